// Five equal petals, each in two flat washes, on a straight stem. Clear, and rather stiff.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function petal(x, y, dir, len, wide) {
  brush.beginShape(0.5);
  for (const [l, w] of [[0, 0], [0.35, 0.6], [0.7, 1], [0.95, 0.55], [1, 0], [0.95, -0.55], [0.7, -1], [0.35, -0.6]]) {
    brush.vertex(x + cos(dir) * len * l - sin(dir) * wide * w, y + sin(dir) * len * l + cos(dir) * wide * w);
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 247, 236);
  brush.noStroke();
  brush.fillTexture(0.3, 0.4, false);
  brush.fillBleed(0.08);
  brush.fill(104, 146, 84, 220);
  brush.beginShape(0);
  for (const [x, y] of [[295, 330], [293, 460], [294, 590], [306, 590], [307, 460], [305, 330]]) brush.vertex(x, y);
  brush.endShape(true);
  petal(300, 500, 205, 120, 30);
  petal(300, 520, -25, 120, 30);

  brush.fillTexture(0.4, 0.4);
  for (let i = 0; i < 5; i++) {
    const dir = -90 + i * 72;
    brush.fillBleed(0.2);
    brush.fill(252, 160, 130, 190);
    petal(300, 250, dir, 165, 62);
    brush.fill(236, 104, 100, 160);
    petal(300, 250, dir, 92, 30);
  }
  brush.fillBleed(0.1);
  brush.fill(248, 196, 70, 240);
  brush.circle(300, 250, 20);
  brush.fill(226, 140, 60, 220);
  brush.circle(304, 254, 10);
}
