// A double hibiscus: three whorls of ruffled petals, pale and wide outside, small and deep inside.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// A frill: a short, very wavy petal set on a circle of radius r0 and pointing outwards.
function frill(x, y, dir, r0, len, wide, seed) {
  brush.beginShape(0.3);
  for (let i = 0; i <= 6; i++) {
    const v = (i / 3 - 1) * 0.45;
    const l = r0 + len * 0.1 * sin(i * 60);
    brush.vertex(x + l * cos(dir) - v * wide * sin(dir), y + l * sin(dir) + v * wide * cos(dir));
  }
  for (let i = 16; i >= 0; i--) {
    const v = i / 8 - 1;
    const l = r0 + len * (1 - 0.4 * v * v) * (1 + 0.09 * sin(i * 95 + seed * 57) + 0.05 * sin(i * 171));
    brush.vertex(x + l * cos(dir) - v * wide * sin(dir), y + l * sin(dir) + v * wide * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 246, 240);
  brush.noStroke();
  const cx = 306, cy = 274;

  // leaves peep out under the skirt
  brush.fillTexture(0.4, 0.4);
  const leaves = [[118, 230, [84, 134, 108]], [66, 236, [134, 160, 90]], [146, 226, [150, 168, 96]]];
  for (const [dir, r, tone] of leaves) {
    brush.fillBleed(0.22, "out", 180 - dir);
    brush.fill(...tone, 210);
    brush.beginShape(0.6);
    for (const [l, w] of [[0.72, 0], [0.95, 40], [1.15, 36], [1.4, 4], [1.15, -30], [0.92, -36]]) {
      brush.vertex(cx + r * l * cos(dir) - w * sin(dir), cy + r * l * sin(dir) + w * cos(dir));
    }
    brush.endShape(true);
  }

  // outer whorl
  for (let i = 0; i < 6; i++) {
    const dir = -70 + i * 60;
    brush.fillTexture(0.35, 0.35);
    brush.fillBleed(0.28, "out", i % 2 ? 180 - dir : -dir);
    brush.fill(...(i % 2 ? [255, 186, 166] : [252, 164, 150]), 205);
    frill(cx, cy, dir, 26, 196, 118, i);
  }
  // middle whorl, turned half a step, base dark so each frill lifts off the one below
  for (let i = 0; i < 6; i++) {
    const dir = -40 + i * 60;
    brush.fillTexture(0.35, 0.3);
    brush.fillBleed(0.3, "out", -dir);
    brush.fill(...(i % 2 ? [240, 96, 108] : [246, 120, 112]), 190);
    frill(cx, cy, dir, 14, 140, 78, i + 3);
  }
  // inner whorl
  for (let i = 0; i < 5; i++) {
    const dir = -90 + i * 72;
    brush.fillTexture(0.3, 0.3);
    brush.fillBleed(0.3, "out", -dir);
    brush.fill(210, 40, 84, 195);
    frill(cx, cy, dir, 2, 88, 46, i + 7);
  }
  // crumpled middle
  for (let i = 0; i < 4; i++) {
    const dir = -60 + i * 90;
    brush.fillBleed(0.3, "out", -dir);
    brush.fill(146, 12, 62, 190);
    frill(cx, cy, dir, 0, 48, 26, i + 11);
  }
  // light caught on three curled rims
  brush.fillTexture(0.2, 0.2, false);
  brush.fillBleed(0.15);
  brush.fill(255, 238, 226, 200);
  for (const dir of [-102, -38, 208]) frill(cx, cy, dir, 128, 18, 34, dir);

  // short column
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  for (let i = 0; i < 8; i++) {
    const a = i * 137.5, r = 4 + i * 3.2;
    brush.fill(255, 214 - i * 5, 90, 255);
    brush.beginShape(0);
    for (let k = 0; k < 360; k += 45) brush.vertex(cx + r * cos(a) + 5.5 * cos(k), cy - 8 + r * sin(a) + 5.5 * sin(k));
    brush.endShape(true);
  }
}
