// Butter-yellow petals round a maroon eye; the contrast of the eye is the whole idea, so the petals stay simple and wide.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 304, CY = 262;

// Points of a broad petal whose right edge is thrown forward, like a propeller blade.
function blade(dir, reach, scale) {
  const points = [[0, 0]];
  for (let i = 0; i <= 20; i++) {
    const e = i / 10 - 1;
    const bulge = pow(cos(e * 80), 0.45) * (1 + 0.12 * e);
    const wave = 1 + 0.04 * sin(i * 83 + dir * 2);
    const a = dir + e * 44 * scale, r = reach * bulge * wave;
    points.push([r * cos(a), r * sin(a)]);
  }
  return points;
}

function lay(points) {
  brush.beginShape(0.2);
  for (const [x, y] of points) brush.vertex(CX + x, CY + y);
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 248, 238);
  brush.noStroke();

  // stem and two leaves
  brush.fillTexture(0.2, 0.5, false);
  brush.fillBleed(0.07, "out", 0);
  brush.fill(98, 128, 70, 240);
  lay([[-40, 200], [-48, 256], [-44, 340], [-32, 340], [-34, 258], [-26, 202]]);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2, "out", 0);
  brush.fill(66, 116, 94, 225);
  lay([[-46, 296], [-100, 236], [-170, 214], [-246, 226], [-212, 266], [-130, 298]]);
  brush.fillBleed(0.2, "out", 180);
  brush.fill(140, 160, 72, 220);
  lay([[-36, 310], [30, 250], [110, 236], [190, 262], [130, 300], [50, 322]]);

  const dirs = [-122, -50, 22, 166, 94];
  const tones = [[255, 218, 110], [255, 206, 92], [252, 190, 84], [255, 212, 104], [250, 184, 86]];
  dirs.forEach((dir, i) => {
    brush.fillTexture(0.32, 0.35);
    brush.fillBleed(0.28, "out", 180 - dir);
    brush.fill(...tones[i], 225);
    lay(blade(dir, 228 - (i % 2) * 12, 1));
    brush.fillTexture(0.35, 0.05);
    brush.fillBleed(0.4, "out", -dir);
    brush.fill(246, 128, 70, 165);
    lay(blade(dir, 158, 0.66));
  });

  // the eye: one maroon star whose rays run into the wet yellow, then its nearly black core
  const star = (r, depth, shift) => {
    const points = [];
    for (let k = 0; k < 360; k += 6) {
      const rr = r * (1 + depth * cos(5 * (k - 22)) + 0.07 * sin(k * 13 + shift));
      points.push([rr * cos(k), rr * sin(k)]);
    }
    return points;
  };
  brush.fillTexture(0.3, 0.05);
  brush.fillBleed(0.35);
  brush.fill(160, 16, 52, 230);
  lay(star(66, 0.42, 0));
  brush.fill(92, 4, 44, 220);
  lay(star(38, 0.3, 90));

  // column swings up to the left, in pale gold with red tips
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  brush.fill(255, 234, 170, 255);
  lay([[4, 6], [-34, -40], [-66, -116], [-56, -120], [-22, -50], [18, 0]]);
  for (let i = 0; i < 11; i++) {
    const x = -34 - i * 3.2 + 15 * sin(i * 140), y = -48 - i * 7 + 6 * cos(i * 140);
    brush.fill(...(i > 8 ? [190, 24, 56] : [255, 244, 206]), 255);
    lay([[x - 5.5, y], [x - 2, y - 5], [x + 4, y - 4], [x + 5.5, y + 1], [x + 1, y + 5]]);
  }
}
