// Magenta bloom with a very large dark heart: strong, but the dark takes most of the petals with it.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function star(cx, cy, lobes, inner, outer, turn) {
  brush.beginShape(0.5);
  for (let a = 0; a < 360; a += 12) {
    const r = inner + (outer - inner) * pow(abs(cos((lobes / 2) * (a + turn))), 0.7);
    brush.vertex(cx + r * cos(a), cy + r * sin(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 246, 242);
  brush.noStroke();

  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2);
  brush.fill(110, 150, 110, 200);
  for (const side of [-1, 1]) {
    brush.beginShape(0.5);
    for (const [dx, dy] of [[96, 150], [150, 130], [206, 160], [224, 206], [170, 204], [120, 186]]) brush.vertex(300 + side * dx, 290 + dy);
    brush.endShape(true);
  }
  brush.fillBleed(0.25);
  brush.fill(246, 120, 170, 210);
  star(300, 290, 5, 90, 186, 18);
  brush.fill(226, 60, 130, 190);
  star(300, 290, 5, 70, 140, 18);
  brush.fill(170, 20, 96, 200);
  star(300, 290, 5, 50, 104, 18);
  brush.fill(110, 8, 70, 210);
  star(300, 290, 5, 26, 62, 18);
  brush.fillTexture(0, 0.4, false);
  brush.fill(250, 200, 90, 250);
  for (let i = 0; i < 9; i++) brush.circle(300 + 8 * sqrt(i) * cos(i * 137), 290 + 8 * sqrt(i) * sin(i * 137), 7);
}
