// One big sunflower on a sheet of 1024 x 1024: sixteen rays, a seed head of two washes, a stem, two leaves.
const S = 1024;

function setup() {
  createCanvas(S, S, WEBGL);
  brush.scaleBrushes(5);
  angleMode(DEGREES);
  noLoop();
}

function ray(angle, inner, outer, half) {
  const p = (r, w) => [S / 2 + r * cos(angle) - w * sin(angle), 430 + r * sin(angle) + w * cos(angle)];
  brush.beginShape(0.5);
  for (const [r, w] of [[inner, -half * 0.5], [(inner + outer) * 0.5, -half], [outer, 0], [(inner + outer) * 0.48, half], [inner, half * 0.5]]) {
    brush.vertex(...p(r, w));
  }
  brush.endShape(true);
}

function draw() {
  translate(-S / 2, -S / 2);
  background(250, 247, 238);
  brush.noStroke();
  brush.fillTexture(0.4, 0.35);

  brush.fillBleed(0.08);
  brush.fill("#76904c", 215);
  brush.beginShape(0.3);
  for (const [x, y] of [[496, 600], [530, 600], [544, 800], [530, 1000], [494, 1000], [510, 800]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fillBleed(0.18);
  for (const side of [-1, 1]) {
    brush.fill(side < 0 ? "#87a35a" : "#6b8a52", 190);
    brush.beginShape(0.5);
    for (const [dx, dy] of [[10, 0], [120, -100], [300, -110], [230, 10], [110, 50]]) brush.vertex(520 + side * dx, 860 + dy);
    brush.endShape(true);
  }

  brush.fillBleed(0.22);
  for (let i = 0; i < 16; i++) {
    brush.fill(["#f4c234", "#eeae2c", "#f7d35a"][i % 3], 190);
    ray(i * 22.5 + (i % 2) * 4, 110, 330 - (i % 2) * 30, 52);
  }

  brush.fillTexture(0.6, 0.5);
  brush.fillBleed(0.15);
  brush.fill("#6a4322", 220);
  brush.circle(S / 2, 430, 132);
  brush.fill("#3a2417", 200);
  brush.circle(S / 2 + 8, 438, 70);
}
