// Two pears: a body each, a shadow, a leaf. The lightest sketch of the corpus.
function setup() {
  createCanvas(600, 600, WEBGL);
  noLoop();
}

function pear(x, y, s) {
  brush.beginShape(0.6);
  brush.vertex(x, y - 150 * s);
  brush.vertex(x + 40 * s, y - 120 * s);
  brush.vertex(x + 56 * s, y - 30 * s);
  brush.vertex(x + 104 * s, y + 60 * s);
  brush.vertex(x + 60 * s, y + 134 * s);
  brush.vertex(x - 50 * s, y + 136 * s);
  brush.vertex(x - 100 * s, y + 66 * s);
  brush.vertex(x - 52 * s, y - 26 * s);
  brush.vertex(x - 36 * s, y - 116 * s);
  brush.endShape(true);
}

function draw() {
  background(250, 246, 236);
  brush.noStroke();
  brush.fillTexture(0.45, 0.35);
  brush.fillBleed(0.2);
  brush.fill(150, 140, 160, 120);
  brush.beginShape(0.4);
  brush.vertex(-220, 170); brush.vertex(60, 150); brush.vertex(240, 180); brush.vertex(80, 214); brush.vertex(-160, 210);
  brush.endShape(true);
  brush.fill(214, 190, 70, 200);
  pear(-80, 50, 1);
  brush.fill(196, 140, 60, 190);
  pear(110, 84, 0.8);
  brush.fill(100, 140, 70, 210);
  brush.beginShape(0.5);
  brush.vertex(-80, -100); brush.vertex(-20, -150); brush.vertex(60, -160); brush.vertex(10, -110);
  brush.endShape(true);
}
