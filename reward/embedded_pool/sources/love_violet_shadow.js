// Warm light from the upper left, cool shadow to the lower right: the same five petals run from apricot to blue-violet.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// Petal as a hand-shaped curve: twelve control points in its own frame, then turned.
const FORM = [[0, 0], [0.18, 0.2], [0.4, 0.62], [0.62, 0.9], [0.84, 0.84], [0.98, 0.5], [0.95, 0.16], [1.03, -0.2], [0.9, -0.68], [0.66, -0.92], [0.4, -0.66], [0.16, -0.2]];

function petal(x, y, dir, len, wide, flip = 1) {
  brush.beginShape(0.45);
  for (const [l, w] of FORM) {
    brush.vertex(x + len * l * cos(dir) - wide * w * flip * sin(dir), y + len * l * sin(dir) + wide * w * flip * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 247, 243);
  brush.noStroke();
  const cx = 288, cy = 296;

  // cast shadow on the paper gives the bloom its weight
  brush.fillTexture(0.5, 0.1);
  brush.fillBleed(0.45, "out", 150);
  brush.fill(170, 168, 214, 150);
  petal(300, 330, 40, 280, 170);

  // leaves
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.22, "out", 120);
  brush.fill(72, 104, 134, 210);
  petal(438, 448, 50, 160, 38);
  brush.fillBleed(0.22, "out", 30);
  brush.fill(108, 146, 96, 210);
  petal(150, 462, 120, 150, 36, -1);

  const plan = [
    // dir, len, wide, light tone, shade tone
    [-134, 246, 112, [255, 188, 136], [250, 118, 92]],
    [-62, 240, 110, [255, 164, 130], [236, 86, 100]],
    [154, 236, 110, [255, 158, 140], [226, 76, 116]],
    [82, 226, 108, [214, 120, 176], [150, 70, 160]],
    [10, 234, 112, [226, 128, 168], [168, 74, 156]],
  ];
  plan.forEach(([dir, len, wide, light, shade], i) => {
    const flip = i % 2 ? -1 : 1;
    brush.fillTexture(0.33, 0.35);
    brush.fillBleed(0.25, "out", 135 + 40 * flip);
    brush.fill(...light, 215);
    petal(cx, cy, dir, len, wide, flip);
    brush.fillTexture(0.35, 0.08);
    brush.fillBleed(0.35, "out", -dir);
    brush.fill(...shade, 175);
    petal(cx, cy, dir + 9, len * 0.82, wide * 0.56, flip);
    brush.fill(...shade, 150);
    petal(cx, cy, dir - 8, len * 0.55, wide * 0.34, flip);
  });

  // throat
  brush.fillTexture(0.3, 0.1);
  for (const [dir] of plan) {
    brush.fillBleed(0.4, "out", -dir);
    brush.fill(112, 16, 92, 215);
    petal(cx - 8 * cos(dir), cy - 8 * sin(dir), dir, 94, 24);
  }

  // column in full light
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  brush.fill(255, 236, 190, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[282, 290], [304, 226], [310, 146], [320, 146], [320, 226], [298, 300]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 10; i++) {
    const x = 313 + 15 * sin(i * 140), y = 214 - i * 7.5;
    brush.fill(...(i > 7 ? [214, 60, 100] : [255, 200, 70]), 255);
    brush.beginShape(0);
    for (let k = 0; k < 360; k += 45) brush.vertex(x + 5.2 * cos(k), y + 5.2 * sin(k));
    brush.endShape(true);
  }
}
