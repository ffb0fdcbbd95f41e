// Wind from the left: all petals stream to the right, loose flecks of colour have already left.
// The drawing is one family of curves: every edge is bent by the same gust.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 236, CY = 300;

// The gust: the farther a point is from the heart, the more it is carried right and up.
function gust(x, y) {
  const d = dist(0, 0, x, y) / 230;
  return [CX + x + 92 * d * d, CY + y * (1 - 0.12 * d) - 26 * d * d];
}

function petal(dir, len, wide, seed) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 8) {
    const u = (1 - cos(k)) / 2;
    const torn = 1 + u * u * u * (0.07 * sin(k * 6 + seed) + 0.05 * sin(k * 13 + seed * 2));
    const l = len * u * torn, w = wide * sin(k) * pow(u, 0.55);
    brush.vertex(...gust(l * cos(dir) - w * sin(dir), l * sin(dir) + w * cos(dir)));
  }
  brush.endShape(true);
}

function fleck(x, y, r, stretch, turn) {
  brush.beginShape(0.5);
  for (let k = 0; k < 360; k += 36) {
    const rx = r * stretch * cos(k), ry = r * sin(k) * (1 + 0.2 * sin(k * 3));
    brush.vertex(x + rx * cos(turn) - ry * sin(turn), y + rx * sin(turn) + ry * cos(turn));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 248, 242);
  brush.noStroke();

  // moving air
  brush.fillTexture(0.7, 0.05);
  brush.fillBleed(0.5, "out", 180);
  brush.fill(255, 214, 186, 130);
  fleck(390, 200, 90, 2.2, -16);

  // bent stem and one leaf that flies with the petals
  brush.fillTexture(0.2, 0.5, false);
  brush.fillBleed(0.06, "out", 90);
  brush.fill(92, 126, 84, 240);
  brush.beginShape(0.5);
  for (const [x, y] of [[206, 384], [156, 466], [130, 536], [122, 604], [138, 604], [144, 542], [170, 472], [216, 396]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fillTexture(0.4, 0.4, false);
  brush.fillBleed(0.22, "out", 180);
  brush.fill(72, 124, 112, 225);
  brush.beginShape(0.5);
  for (const [x, y] of [[138, 556], [190, 500], [270, 486], [370, 506], [440, 548], [340, 556], [230, 562]]) brush.vertex(x, y);
  brush.endShape(true);

  const petals = [
    [198, 150, 92, [232, 84, 104]],
    [-118, 198, 104, [244, 110, 112]],
    [108, 184, 100, [246, 116, 100]],
    [-48, 214, 104, [252, 140, 116]],
    [32, 216, 106, [255, 158, 124]],
  ];
  petals.forEach(([dir, len, wide, colour], i) => {
    brush.fillTexture(0.34, 0.32);
    brush.fillBleed(0.3, "out", 200);
    brush.fill(...colour, 205);
    petal(dir, len, wide, i * 61);
    brush.fillTexture(0.35, 0.05);
    brush.fillBleed(0.42, "out", -dir);
    brush.fill(208, 40, 94, 165);
    petal(dir + 5, len * 0.7, wide * 0.5, i * 37);
  });
  brush.fillTexture(0, 0.2, false);
  brush.fillBleed(0.04);
  brush.fill(180, 26, 84, 130);
  for (const dir of [-56, -40, 24, 42, 104, -112]) petal(dir, 176, 3.4, 0);
  brush.fillTexture(0.3, 0.05);
  brush.fillBleed(0.4);
  brush.fill(120, 6, 70, 225);
  fleck(CX + 4, CY, 30, 1.3, -10);

  // flecks: bigger near the bloom, smaller far off
  brush.fillTexture(0.3, 0.4);
  brush.fillBleed(0.3, "out", 180);
  [[556, 150, 13], [498, 92, 8], [582, 246, 7], [566, 404, 10], [536, 66, 5]].forEach(([x, y, r], i) => {
    brush.fill(...(i % 2 ? [252, 140, 110] : [236, 84, 108]), 215);
    fleck(x, y, r, 1.7, -30 + i * 12);
  });

  // column follows the gust
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  brush.fill(255, 226, 160, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[228, 298], [300, 276], [370, 238], [428, 186], [434, 194], [378, 250], [306, 290], [238, 314]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 9; i++) {
    brush.fill(...(i > 6 ? [255, 240, 214] : [250, 190, 56]), 255);
    fleck(358 + i * 9 + 8 * sin(i * 140), 240 - i * 6.6 + 14 * cos(i * 140), 5.5, 1.2, -40);
  }
}
