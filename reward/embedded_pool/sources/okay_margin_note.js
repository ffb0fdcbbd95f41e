// Five small brush dabs and a stem: a quick note from a sketchbook margin.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function dab(x, y, dir, len, fat) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 18) {
    const l = (len / 2) * (1 - cos(k)), w = fat * sin(k) * (1 + 0.12 * sin(k * 5 + dir));
    brush.vertex(x + l * cos(dir) - w * sin(dir), y + l * sin(dir) + w * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 247, 239);
  brush.noStroke();

  brush.fillTexture(0.4, 0.45);
  brush.fillBleed(0.25);
  for (const [dir, len, r, g, b] of [
    [-110, 150, 246, 124, 106],
    [-50, 160, 252, 150, 116],
    [6, 146, 240, 104, 108],
    [80, 136, 248, 136, 112],
    [170, 152, 250, 144, 128],
  ]) {
    brush.fill(r, g, b, 220);
    dab(320 + 14 * cos(dir), 240 + 14 * sin(dir), dir, len, 46);
  }
  for (const dir of [-110, -50, 6, 80, 170]) {
    brush.fill(206, 60, 90, 150);
    dab(320 + 10 * cos(dir), 240 + 10 * sin(dir), dir + 6, 70, 16);
  }
  brush.fill(180, 40, 80, 210);
  dab(296, 240, 0, 44, 20);
  brush.fill(84, 128, 100, 225);
  brush.fillBleed(0.12);
  dab(312, 350, 104, 210, 7);
  brush.fillBleed(0.25);
  dab(280, 490, 200, 120, 24);
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.06);
  brush.fill(248, 190, 70, 250);
  dab(316, 234, -24, 110, 5);
  dab(404, 180, -60, 18, 8);
  dab(420, 192, -20, 18, 8);
}
