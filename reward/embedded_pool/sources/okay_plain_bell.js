// A hanging bell, seen from the side. Two tones of rose, symmetrical, the stem is a hook.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function half(sign) {
  // one half of the bell as distances from its axis x = 300
  return [[0, 210], [50, 230], [84, 300], [104, 370], [146, 424], [104, 440], [70, 420], [36, 446], [0, 424]].map(([d, y]) => [300 + sign * d, y]);
}

function shape(points, curve) {
  brush.beginShape(curve);
  for (const [x, y] of points) brush.vertex(x, y);
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 246, 242);
  brush.noStroke();

  brush.fillTexture(0.25, 0.4, false);
  brush.fillBleed(0.07);
  brush.fill(112, 142, 90, 230);
  shape([[294, 200], [290, 140], [240, 92], [150, 90], [90, 130], [84, 124], [148, 78], [246, 80], [302, 134], [306, 200]], 0.4);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2);
  shape([[150, 88], [120, 150], [70, 190], [60, 140], [96, 100]], 0.5);
  shape([[262, 98], [330, 60], [410, 70], [430, 100], [350, 112]], 0.5);

  brush.fill(248, 150, 150, 215);
  shape(half(1), 0.4);
  brush.fill(238, 120, 136, 215);
  shape(half(-1), 0.4);
  brush.fill(210, 60, 100, 150);
  shape([[300, 214], [330, 260], [346, 340], [300, 390], [254, 340], [270, 260]], 0.5);
  brush.fillBleed(0.1);
  for (const side of [-1, 1]) shape([[300 + 14 * side, 230], [300 + 58 * side, 330], [300 + 84 * side, 410], [300 + 50 * side, 330]], 0.4);
  brush.fill(120, 152, 90, 235);
  shape([[258, 238], [280, 200], [300, 192], [320, 200], [342, 238], [300, 222]], 0.4);
  brush.fillTexture(0, 0.4, false);
  brush.fill(250, 196, 80, 250);
  shape([[296, 430], [297, 490], [303, 490], [304, 430]], 0);
  brush.circle(292, 492, 9);
  brush.circle(306, 498, 9);
  brush.circle(300, 508, 9);
  brush.circle(291, 478, 8);
  brush.circle(309, 482, 8);
}
