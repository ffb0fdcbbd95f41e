// Few bold strokes: a handful of loaded brush marks make the flower, nothing is corrected.
// Wide, wet, saturated; the white gaps between the marks do the drawing.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// One press of a round brush: pointed where it lands, fat where it is pressed, bent by the wrist.
function press(x, y, dir, len, fat, bend) {
  const edge = [];
  for (let i = 0; i <= 14; i++) {
    const t = i / 14;
    const w = fat * sin(180 * pow(t, 1.6)) * (1 + 0.09 * sin(i * 71));
    const turn = dir + bend * t;
    edge.push([x + len * t * cos(turn), y + len * t * sin(turn), turn, w]);
  }
  brush.beginShape(0);
  for (const [px, py, d, w] of edge) brush.vertex(px - sin(d) * w, py + cos(d) * w);
  for (const [px, py, d, w] of edge.reverse()) brush.vertex(px + sin(d) * w, py - cos(d) * w);
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 249, 241);
  brush.noStroke();
  const cx = 344, cy = 246;

  // stem in one pull, two leaves in one press each, laid first and kept clear of the bloom
  brush.fillTexture(0.3, 0.5, false);
  brush.fillBleed(0.12, "out", 90);
  brush.fill(58, 100, 80, 245);
  press(268, 424, 112, 190, 8, -8);
  brush.fillTexture(0.45, 0.5);
  brush.fillBleed(0.25, "out", 0);
  brush.fill(56, 112, 100, 235);
  press(218, 520, 188, 170, 34, 34);
  brush.fillBleed(0.25, "out", 180);
  brush.fill(128, 150, 66, 230);
  press(240, 540, -14, 200, 30, 4);

  // petals: pigment runs to the end of the mark
  brush.fillTexture(0.32, 0.45);
  const marks = [
    [-96, 226, 82, 20, [240, 66, 84]],
    [-24, 222, 80, 20, [252, 112, 80]],
    [44, 220, 78, 18, [230, 52, 96]],
    [112, 214, 76, 16, [246, 92, 84]],
    [178, 262, 84, 24, [242, 76, 88]],
  ];
  for (const [dir, len, fat, bend, colour] of marks) {
    brush.fillBleed(0.34, "out", 180 - dir - bend);
    brush.fill(...colour, 245);
    press(cx + 10 * cos(dir), cy + 10 * sin(dir), dir, len, fat, bend);
  }
  // a second touch while wet
  brush.fillTexture(0.3, 0.1);
  for (const [dir, len, fat, bend] of marks) {
    brush.fillBleed(0.45, "out", -dir);
    brush.fill(172, 12, 84, 200);
    press(cx + 8 * cos(dir), cy + 8 * sin(dir), dir + 5, len * 0.6, fat * 0.36, bend);
  }

  // column: a gold sweep and a few flecks
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.06);
  brush.fill(252, 196, 60, 255);
  press(cx - 4, cy + 4, 136, 196, 7, -16);
  for (let i = 0; i < 8; i++) {
    press(cx - 116 - i * 6.5, cy + 90 + i * 4.5 - 20 * (i % 2), 40 + i * 50, 17, 6, 0);
  }
}
