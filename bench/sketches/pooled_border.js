// Hard drying lines: the border of every wash is as strong as it can be.
const colours = ["#6f9fc0", "#7fb0a8", "#a7b56a", "#d8b45a", "#d98a5c", "#c0627a"];

function setup() {
  createCanvas(600, 600, WEBGL);
  angleMode(DEGREES);
  noLoop();
}

function pebble(x, y, rx, ry, turn) {
  brush.beginShape(0.7);
  for (let a = 0; a < 360; a += 45) {
    const px = rx * cos(a) * (1 + 0.12 * sin(a * 2 + x));
    const py = ry * sin(a);
    brush.vertex(x + px * cos(turn) - py * sin(turn), y + px * sin(turn) + py * cos(turn));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 250, 245);
  brush.noStroke();
  brush.fillBleed(0.12);
  for (let i = 0; i < 14; i++) {
    const row = floor(i / 4);
    brush.fillTexture(0.15 + 0.04 * (i % 4), 1);
    brush.fill(colours[i % colours.length], 150 + 5 * i);
    pebble(120 + (i % 4) * 120 + (row % 2) * 40, 120 + row * 120, 66, 48, i * 37);
  }
}
