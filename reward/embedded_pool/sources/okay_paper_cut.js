// Flat pink, hard edges, no bleed to speak of: more paper cut-out than watercolour, but the drawing is right.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background(253, 249, 240);
  brush.noStroke();
  const cx = 310, cy = 260;

  brush.fillTexture(0.15, 0.3, false);
  brush.fillBleed(0.02);
  brush.fill(120, 156, 104, 235);
  brush.beginShape(0.5);
  for (const [x, y] of [[286, 420], [262, 500], [252, 596], [264, 596], [276, 502], [298, 424]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.beginShape(0.5);
  for (const [x, y] of [[260, 540], [310, 490], [390, 480], [440, 510], [380, 540], [310, 556]]) brush.vertex(x, y);
  brush.endShape(true);

  for (let i = 0; i < 5; i++) {
    const dir = -70 + i * 72;
    brush.fill(...(i % 2 ? [250, 164, 160] : [246, 146, 148]), 230);
    brush.beginShape(0.3);
    for (let k = 20; k <= 340; k += 20) {
      const l = 86 - 84 * cos(k), w = 78 * sin(k) * (0.75 - 0.25 * cos(k));
      brush.vertex(cx + l * cos(dir) - w * sin(dir), cy + l * sin(dir) + w * cos(dir));
    }
    brush.endShape(true);
    brush.fill(214, 70, 110, 200);
    brush.beginShape(0.3);
    for (const [l, w] of [[4, 5], [60, 16], [90, 0], [60, -16], [4, -5]]) brush.vertex(cx + l * cos(dir) - w * sin(dir), cy + l * sin(dir) + w * cos(dir));
    brush.endShape(true);
  }
  brush.fill(250, 206, 110, 250);
  brush.beginShape(0.3);
  for (const [x, y] of [[306, 264], [270, 310], [232, 346], [238, 352], [278, 318], [316, 270]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 5; i++) brush.circle(264 - i * 8, 312 + i * 9 + (i % 2) * 8, 8);
}
