// Dry paper, wet brush: every wash dries with a dark rim. The petals are almost empty inside and live by their edges.
// Apricot and rose, with a lot of sheet left alone on the right.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// Closed curve through a radius function of the angle.
function loop360(x, y, radius, step = 9) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += step) brush.vertex(x + radius(k) * cos(k), y + radius(k) * sin(k));
  brush.endShape(true);
}

// Rounded petal that touches (x, y) and lies towards dir: a rounded drop with a slow wave.
function petal(x, y, dir, size, fat, phase) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 9) {
    const r = size * sqrt(0.5 + 0.5 * cos(k));
    const wave = 1 + 0.05 * sin(k * 4 + phase) + 0.04 * sin(k * 7 + phase * 3);
    const l = (r * cos(k) + size * 0.06) * wave, w = r * sin(k) * fat * wave;
    brush.vertex(x + l * cos(dir) - w * sin(dir), y + l * sin(dir) + w * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 249, 240);
  brush.noStroke();
  const cx = 262, cy = 268;

  // leaves, edges pooled as well
  brush.fillTexture(0.5, 0.9);
  brush.fillBleed(0.14, "out", 180);
  brush.fill(96, 144, 120, 220);
  petal(404, 440, 40, 170, 0.42, 40);
  brush.fillBleed(0.14, "out", 60);
  brush.fill(150, 170, 96, 210);
  petal(178, 470, 122, 140, 0.42, 10);

  const petals = [
    [-104, 222, [255, 184, 140]],
    [-30, 230, [250, 146, 120]],
    [184, 222, [255, 170, 132]],
    [112, 206, [244, 124, 116]],
    [42, 216, [252, 156, 124]],
  ];
  petals.forEach(([dir, size, colour], i) => {
    brush.fillTexture(0.55, 1);
    brush.fillBleed(0.16, "out", 180 - dir);
    brush.fill(...colour, 235);
    petal(cx, cy, dir, size, 0.92, i * 80);
    brush.fillTexture(0.45, 0.7);
    brush.fillBleed(0.2, "out", -dir);
    brush.fill(232, 74, 96, 160);
    petal(cx, cy, dir + 7, size * 0.66, 0.6, i * 50);
  });

  // back-runs: water dropped into a drying wash pushes pigment into a ring
  brush.fillTexture(0.3, 1);
  brush.fillBleed(0.3);
  brush.fill(255, 226, 204, 190);
  for (const [x, y, r] of [[420, 208, 30], [212, 116, 24], [120, 288, 26]]) loop360(x, y, (k) => r * (1 + 0.2 * sin(k * 5 + x) + 0.12 * sin(k * 8)));

  // throat
  brush.fillTexture(0.3, 0.6);
  brush.fillBleed(0.25);
  brush.fill(186, 22, 76, 220);
  loop360(cx, cy, (k) => 50 + 26 * cos(5 * (k + 30)) + 6 * sin(k * 11), 6);
  brush.fill(110, 8, 60, 210);
  loop360(cx, cy, (k) => 22 + 9 * cos(5 * (k + 30)));

  // column
  brush.fillTexture(0, 0.8, false);
  brush.fillBleed(0.04);
  brush.fill(255, 220, 150, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[256, 266], [332, 234], [398, 176], [404, 184], [340, 248], [268, 282]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 10; i++) {
    brush.fill(...(i > 7 ? [206, 44, 72] : [248, 182, 48]), 255);
    loop360(322 + i * 8.2 + 9 * sin(i * 137), 238 - i * 6.4 + 13 * cos(i * 137), () => 5 + (i % 2), 40);
  }

  // spatter
  brush.fillTexture(0.3, 0.9);
  for (const [x, y, r] of [[520, 128, 7], [548, 168, 4], [498, 86, 4], [70, 470, 6], [44, 440, 4]]) {
    brush.fill(246, 130, 116, 210);
    loop360(x, y, (k) => r * (1 + 0.15 * sin(k * 3)), 30);
  }
}
