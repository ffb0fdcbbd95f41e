// Wet-in-wet: the bloom is put into standing water. The upper rims are found, the lower ones run down the sheet.
// Few vertices and strong bleed make the edges wander by themselves.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// A puddle: a loop of few corners, wandering round an egg that points along turn.
function puddle(x, y, long, short, turn, wander = 0.12) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 20) {
    const r = 1 + wander * sin(k * 3 + turn * 2) + 0.6 * wander * sin(k * 5 - turn);
    const l = long * r * cos(k), s = short * r * sin(k) * (1 + 0.3 * cos(k));
    brush.vertex(x + l * cos(turn) - s * sin(turn), y + l * sin(turn) + s * cos(turn));
  }
  brush.endShape(true);
}

// A run of colour pulled down by its own weight, ending in a drop.
function run(x, y, len, w) {
  brush.beginShape(0.4);
  for (const [dx, dy] of [[-1, 0], [-0.5, 0.45], [-0.35, 0.8], [-0.7, 0.94], [0, 1], [0.7, 0.94], [0.3, 0.8], [0.6, 0.4], [1, 0]]) {
    brush.vertex(x + dx * w, y + dy * len);
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 247, 240);
  brush.noStroke();
  const cx = 296, cy = 258;

  // first water: blush everywhere the flower will be
  brush.fillTexture(0.6, 0.15);
  brush.fillBleed(0.6, "out", 90);
  brush.fill(255, 206, 190, 130);
  puddle(300, 280, 232, 210, 30);

  // five charges of pigment, each with its own temperature
  brush.fillTexture(0.4, 0.3);
  const charges = [
    [-128, [255, 142, 118]],
    [-52, [244, 96, 110]],
    [22, [252, 128, 98]],
    [160, [252, 124, 116]],
    [92, [232, 78, 112]],
  ];
  for (const [dir, colour] of charges) {
    brush.fillBleed(0.5, "out", 180 - dir);
    brush.fill(...colour, 215);
    puddle(cx + 122 * cos(dir), cy + 118 * sin(dir), 118, 88, dir);
  }
  // second charge, dropped near the heart and left to spread
  brush.fillTexture(0.4, 0.05);
  for (const [dir] of charges) {
    brush.fillBleed(0.65, "out", -dir);
    brush.fill(204, 32, 96, 185);
    puddle(cx + 62 * cos(dir + 8), cy + 60 * sin(dir + 8), 66, 34, dir, 0.2);
  }
  brush.fillBleed(0.6);
  brush.fill(122, 8, 76, 225);
  puddle(cx, cy, 42, 34, 70, 0.3);

  // colour leaves the petals and runs
  brush.fillTexture(0.3, 0.5, false);
  for (const [x, y, len, w, colour] of [
    [250, 458, 100, 9, [238, 92, 116]],
    [312, 484, 92, 10, [232, 78, 112]],
    [356, 440, 134, 9, [238, 92, 112]],
    [446, 384, 96, 8, [252, 132, 104]],
    [150, 376, 128, 9, [252, 132, 120]],
  ]) {
    brush.fillBleed(0.1, "out", 90);
    brush.fill(...colour, 215);
    run(x, y, len, w);
  }

  // greens touched in at the edge while it was wet
  brush.fillTexture(0.5, 0.35);
  brush.fillBleed(0.5, "out", 180);
  brush.fill(116, 156, 104, 205);
  puddle(74, 440, 70, 26, 130);
  brush.fillBleed(0.5, "out", 0);
  brush.fill(72, 130, 128, 205);
  puddle(520, 452, 84, 30, 42);

  // column is lifted out with a dry brush, pollen spattered
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.07);
  brush.fill(255, 230, 176, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[288, 264], [314, 206], [350, 138], [360, 142], [332, 212], [306, 268]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 8; i++) {
    brush.fill(255, 190 + i * 5, 60, 255);
    puddle(326 + i * 4.6 + 15 * sin(i * 140), 186 - i * 8 + 8 * cos(i * 90), 5.5, 5, i);
  }
}
