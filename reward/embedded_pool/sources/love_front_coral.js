// A wide open hibiscus, set left of centre, its stamen column swinging to the lower right.
// Every petal is a stack: pale wash, warmer glaze, vein strokes, dark throat.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// A fan shaped petal: narrow at (x, y), broad and ruffled at the far end.
function petal(x, y, dir, len, wide, phase) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 9) {
    const along = (1 - cos(k)) / 2;
    const rim = along * along;
    const ruffle = 0.035 * sin(k * 8 + phase) + 0.03 * sin(k * 13 + phase * 2);
    const l = len * along * (1 + ruffle * rim);
    const w = sin(k) * wide * pow(along, 0.6) * (1 + ruffle);
    brush.vertex(x + cos(dir) * l - sin(dir) * w, y + sin(dir) * l + cos(dir) * w);
  }
  brush.endShape(true);
}

function leaf(x, y, dir, len, wide) {
  brush.beginShape(0.4);
  brush.vertex(x, y);
  for (const [l, w] of [[0.3, 0.8], [0.55, 1], [0.8, 0.6], [1, 0], [0.75, -0.5], [0.5, -0.9], [0.2, -0.6]]) {
    brush.vertex(x + cos(dir) * len * l - sin(dir) * wide * w, y + sin(dir) * len * l + cos(dir) * wide * w);
  }
  brush.endShape(true);
}

function bead(x, y, r) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 36) brush.vertex(x + r * cos(k), y + r * sin(k));
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 246, 235);
  brush.noStroke();
  const cx = 275, cy = 285;

  // ground wash that lets the bloom breathe
  brush.fillBleed(0.5);
  brush.fillTexture(0.75, 0.1);
  brush.fill(255, 214, 170, 70);
  petal(60, 420, -30, 500, 190, 40);

  // leaves behind the bloom: one cool, one warm
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2, "out", 30);
  brush.fill(86, 132, 108, 210);
  leaf(410, 452, 44, 190, 50);
  brush.fillBleed(0.2, "out", 200);
  brush.fill(140, 160, 80, 190);
  leaf(168, 472, 128, 150, 40);

  const petals = [
    [-100, 225, 128, [255, 160, 130]],
    [-28, 235, 132, [250, 138, 118]],
    [186, 228, 130, [255, 178, 140]],
    [112, 215, 122, [246, 128, 104]],
    [44, 222, 128, [252, 148, 120]],
  ];
  petals.forEach(([dir, len, wide, colour], i) => {
    brush.fillTexture(0.35, 0.35);
    brush.fillBleed(0.28, "out", 180 - dir); // pigment gathers at the rim
    brush.fill(...colour, 205);
    petal(cx, cy, dir, len, wide, i * 70);
    brush.fillBleed(0.3, "out", -dir); // and again at the base
    brush.fill(238, 92, 92, 150);
    petal(cx, cy, dir + 6, len * 0.72, wide * 0.6, i * 50);
    brush.fillTexture(0.2, 0.2, false);
    brush.fillBleed(0.08, "out", -dir);
    brush.fill(214, 70, 90, 110);
    for (const turn of [-12, 12]) petal(cx, cy, dir + turn, len * 0.8, 8, 20);
  });

  // throat
  brush.fillTexture(0.3, 0.2);
  petals.forEach(([dir]) => {
    brush.fillBleed(0.3, "out", -dir);
    brush.fill(176, 24, 70, 210);
    petal(cx, cy, dir, 100, 36, 90);
  });

  // stamen column and pollen
  brush.fillTexture(0, 0.5, false);
  brush.fillBleed(0.05);
  brush.fill(255, 222, 150, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[268, 290], [330, 318], [396, 376], [402, 370], [338, 306], [276, 278]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 6; i++) {
    const t = 0.5 + i * 0.1;
    brush.fill(...(i % 3 ? [250, 190, 50] : [206, 40, 60]), 255);
    bead(270 + 132 * t + 15 * sin(i * 137), 284 + 92 * t + 14 * cos(i * 97), 4.5 + (i % 3));
  }
}
