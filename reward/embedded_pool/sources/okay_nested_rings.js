// Nested outlines: one rosette painted four times, each smaller. Tidy rings instead of petals that overlap.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function rosette(scale, turn) {
  brush.beginShape(0.4);
  for (let a = 0; a < 360; a += 10) {
    const r = scale * (1 + 0.22 * cos(5 * (a - turn)) + 0.03 * sin(a * 11));
    brush.vertex(280 + r * cos(a), 270 + r * sin(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 247, 240);
  brush.noStroke();

  brush.fillTexture(0.45, 0.5);
  brush.fillBleed(0.22);
  const rings = [[150, 255, 190, 160], [112, 250, 152, 130], [76, 240, 110, 108], [42, 206, 52, 88]];
  rings.forEach(([scale, r, g, b], i) => {
    brush.fill(r, g, b, 205);
    rosette(scale, 54 + i * 6);
  });
  brush.fillBleed(0.1);
  brush.fill(250, 204, 96, 245);
  for (let i = 0; i < 9; i++) brush.circle(280 + 18 * cos(i * 40), 270 + 18 * sin(i * 40), 8);

  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2);
  brush.fill(118, 156, 104, 205);
  for (const [x, y, s] of [[400, 440, 1], [170, 450, -1]]) {
    brush.beginShape(0.5);
    for (const [dx, dy] of [[0, 0], [34, 0], [92, 40], [110, 90], [56, 78], [10, 40]]) brush.vertex(x + s * dx, y + dy);
    brush.endShape(true);
  }
}
