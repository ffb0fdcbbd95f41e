// Pointed petals like a lily's, six of them, orange to peach, with a straight line down each.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function lance(cx, cy, dir, len, wide) {
  brush.beginShape(0.5);
  const sides = [[0.02, 0.1], [0.3, 0.8], [0.55, 1], [0.8, 0.6], [1, 0]];
  for (const [l, w] of sides) brush.vertex(cx + len * l * cos(dir) - wide * w * sin(dir), cy + len * l * sin(dir) + wide * w * cos(dir));
  for (const [l, w] of sides.slice(0, 4).reverse()) brush.vertex(cx + len * l * cos(dir) + wide * w * sin(dir), cy + len * l * sin(dir) - wide * w * cos(dir));
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 248, 238);
  brush.noStroke();
  const cx = 290, cy = 300;

  brush.fillBleed(0.18);
  brush.fillTexture(0.4, 0.4);
  brush.fill(116, 152, 96, 200);
  lance(cx + 60, cy + 130, 40, 170, 30);
  lance(cx - 40, cy + 150, 130, 140, 26);
  for (let i = 0; i < 6; i++) {
    brush.fill(...(i < 3 ? [250, 150, 96] : [255, 178, 124]), 205);
    lance(cx, cy, i * 120 + (i < 3 ? 0 : 60) - 90, 214, 52);
  }
  brush.fillTexture(0, 0.3, false);
  brush.fillBleed(0.05);
  brush.fill(206, 80, 70, 150);
  for (let i = 0; i < 6; i++) lance(cx, cy, i * 60 - 90, 170, 4);
  brush.fillTexture(0.3, 0.3);
  brush.fillBleed(0.2);
  brush.fill(190, 50, 70, 190);
  brush.circle(cx, cy, 26);
}
