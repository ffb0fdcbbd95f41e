// The leaves won: a small peach flower sits on five big green shapes.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function leaf(x, y, dir, len, wide) {
  brush.beginShape(0.5);
  for (const [l, w] of [[0, 0], [0.25, 0.75], [0.5, 1], [0.8, 0.55], [1, 0], [0.8, -0.55], [0.5, -1], [0.25, -0.75]]) {
    brush.vertex(x + len * l * cos(dir) - wide * w * sin(dir), y + len * l * sin(dir) + wide * w * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 248, 240);
  brush.noStroke();

  brush.fillTexture(0.45, 0.4);
  brush.fillBleed(0.2);
  const greens = [[128, 164, 100], [90, 138, 104], [150, 174, 104], [104, 150, 120], [134, 160, 88]];
  greens.forEach((green, i) => {
    const dir = 20 + i * 72;
    brush.fill(...green, 190);
    leaf(300 + 80 * cos(dir), 300 + 80 * sin(dir), dir, 150, 38);
  });
  brush.fillTexture(0.35, 0.35);
  for (let i = 0; i < 5; i++) {
    brush.fill(255, 170, 140, 215);
    leaf(300, 300, -90 + i * 72, 118, 48);
  }
  for (let i = 0; i < 5; i++) {
    brush.fill(228, 90, 96, 170);
    leaf(300, 300, -90 + i * 72, 56, 18);
  }
  brush.fillBleed(0.1);
  brush.fill(250, 200, 80, 245);
  brush.circle(300, 300, 15);
}
