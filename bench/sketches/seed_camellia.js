// A camellia: two rings of petals round a heart, three leaves, a short stem and six stamens.
// 22 shapes on 600 x 600.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

function petal(dir, reach, wide, tint, opacity) {
  brush.fill(tint, opacity);
  brush.beginShape(0.5);
  for (let i = 0; i < 14; i++) {
    const t = (i / 14) * 360;
    const along = reach * 0.5 * (1 - cos(t)) * (1 + 0.04 * sin(t * 5 + dir));
    const across = wide * sin(t) * (0.55 + 0.45 * (1 - cos(t)) * 0.5);
    brush.vertex(300 + along * cos(dir) - across * sin(dir), 262 + along * sin(dir) + across * cos(dir));
  }
  brush.endShape(true);
}

function leaf(x, y, dir, len, wide, tint) {
  brush.fill(tint, 195);
  brush.beginShape(0.5);
  for (const [l, w] of [[0, 0], [0.3, 0.9], [0.6, 0.85], [1, 0], [0.62, -0.7], [0.28, -0.75]]) {
    brush.vertex(x + len * l * cos(dir) - wide * w * sin(dir), y + len * l * sin(dir) + wide * w * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 247, 238);
  brush.noStroke();

  // green first, so that the petals lie over it
  brush.fillTexture(0.35, 0.4);
  brush.fillBleed(0.15, "out");
  leaf(300, 430, 32, 190, 44, "#6f9a63");
  leaf(296, 440, 158, 200, 48, "#88a95f");
  leaf(320, 330, -14, 240, 46, "#5b8770");
  brush.fill("#7d8f52", 220);
  brush.beginShape(0.4);
  for (const [x, y] of [[292, 380], [304, 380], [316, 480], [312, 592], [298, 592], [303, 480]]) brush.vertex(x, y);
  brush.endShape(true);

  // outer ring, pale and wet
  brush.fillBleed(0.28, "out");
  const pale = ["#f7b3bd", "#f4a0ae", "#f9c0bb"];
  for (let k = 0; k < 6; k++) petal(k * 60 - 80, 205, 84, pale[k % 3], 175);

  // inner ring
  brush.fillTexture(0.4, 0.3);
  brush.fillBleed(0.2, "out");
  for (let k = 0; k < 5; k++) petal(k * 72 - 50, 128, 50, k % 2 ? "#e25f7d" : "#d94a6e", 190);

  // heart and stamens
  brush.fill("#8d1f45", 220);
  brush.circle(300, 262, 30);
  brush.fillBleed(0.08, "out");
  brush.fill("#f4c04a", 240);
  for (let k = 0; k < 6; k++) brush.circle(300 + 33 * cos(k * 60 + 12), 262 + 33 * sin(k * 60 + 12), 7);
}
