// Many thin glazes: the bloom is built from veils so light that only their overlaps speak.
// The petals turn in a spiral, each veil a little smaller and a little deeper than the last.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// A veil is a lopsided fan with a soft, slowly waving rim; lean pushes its weight to one side.
function veil(x, y, dir, reach, spread, lean = 0) {
  brush.beginShape(0);
  brush.vertex(x - 6 * cos(dir), y - 6 * sin(dir));
  for (let a = -spread; a <= spread; a += spread / 9) {
    const edge = a / spread - lean;
    const r = reach * (1 - 0.36 * pow(abs(edge), 2.4)) * (1 + 0.045 * sin(a * 6 + dir * 3));
    brush.vertex(x + r * cos(dir + a), y + r * sin(dir + a));
  }
  brush.endShape(true);
}

// The throat: one star of many uneven rays, like ink let into wet petals.
function burst(x, y, inner, outer, rays) {
  brush.beginShape(0);
  for (let i = 0; i < rays * 2; i++) {
    const a = (i * 180) / rays;
    const r = i % 2 ? inner : outer * (0.72 + 0.28 * cos(a * 5 + 90) + 0.1 * sin(i * 47));
    brush.vertex(x + r * cos(a), y + r * sin(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 248, 243);
  brush.noStroke();
  const cx = 322, cy = 278;

  // leaves first, they slip under the rim
  brush.fillTexture(0.4, 0.35);
  brush.fillBleed(0.25, "out", 140);
  brush.fill(96, 146, 128, 190);
  veil(238, 448, 136, 170, 17);
  brush.fillBleed(0.25, "out", 60);
  brush.fill(150, 172, 100, 180);
  veil(216, 446, 172, 160, 13);

  // ten outer veils; neighbours are never painted one after the other
  brush.fillTexture(0.28, 0.3);
  for (let i = 0; i < 10; i++) {
    const dir = -90 + i * 144;
    brush.fillBleed(0.3, "out", 180 - dir);
    brush.fill(250 - i * 3, 128 - i * 9, 166 - i * 3, 150);
    veil(cx, cy, dir + (i > 4 ? 16 : 0), 250 - i * 9, 41, i > 4 ? 0.3 : -0.2);
  }
  // inner veils settle towards the base
  for (let i = 0; i < 5; i++) {
    const dir = -76 + i * 144;
    brush.fillTexture(0.3, 0.05);
    brush.fillBleed(0.35, "out", -dir);
    brush.fill(222, 44, 128, 150);
    veil(cx, cy, dir, 172 - i * 5, 30, 0.2);
  }
  brush.fillTexture(0.2, 0.1, false);
  brush.fillBleed(0.2);
  brush.fill(176, 20, 104, 170);
  burst(cx, cy, 34, 128, 26);
  brush.fill(120, 8, 80, 210);
  burst(cx, cy, 20, 66, 21);

  // column: a pale ribbon, then pollen
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  brush.fill(255, 226, 190, 255);
  brush.beginShape(0.6);
  for (const [x, y] of [[316, 278], [300, 214], [258, 148], [268, 142], [314, 206], [330, 272]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 12; i++) {
    const t = i / 11;
    const x = 306 - 48 * t + 14 * sin(i * 140), y = 212 - 74 * t + 9 * cos(i * 110);
    brush.fill(255, 210 - i * 4, 84, 255);
    brush.beginShape(0);
    for (let k = 0; k < 360; k += 40) brush.vertex(x + 5 * cos(k), y + 5 * sin(k));
    brush.endShape(true);
  }
}
