// Three-quarter view: the bloom is a tilted bowl. Far petals are short and dark, near petals long and pale,
// all of them bent by the same ellipse so the turn of the flower can be read.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 300, CY = 268, TILT = -24;

// From the flower's own plane (polar) to the sheet: squash, lean, and let the rim drop towards the viewer.
function seen(angle, r) {
  const fx = r * cos(angle), fy = r * sin(angle) * 0.62 + r * r * 0.0011 * (sin(angle) > -0.2 ? 1 : 0.3);
  return [CX + fx * cos(TILT) - fy * sin(TILT), CY + fx * sin(TILT) + fy * cos(TILT)];
}

function petal(dir, reach, spread, from = 0) {
  brush.beginShape(0);
  for (let i = 0; i <= 20; i++) {
    const e = (i / 20) * 2 - 1;
    const wave = 1 + 0.05 * sin(e * 520 + dir) + 0.03 * sin(e * 900);
    brush.vertex(...seen(dir + e * spread, reach * (1 - 0.3 * pow(abs(e), 3)) * wave));
  }
  brush.vertex(...seen(dir, from));
  brush.endShape(true);
}

function ribbon(points, w0, w1) {
  const n = points.length - 1;
  brush.beginShape(0.5);
  points.forEach(([x, y], i) => brush.vertex(x - lerp(w0, w1, i / n), y));
  [...points].reverse().forEach(([x, y], i) => brush.vertex(x + lerp(w1, w0, i / n), y));
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 246, 236);
  brush.noStroke();

  // stem and leaves below
  brush.fillTexture(0.25, 0.5, false);
  brush.fillBleed(0.07, "out", 0);
  brush.fill(96, 124, 66, 235);
  ribbon([[338, 430], [352, 470], [368, 540], [376, 604]], 6, 8);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.22, "out", 90);
  brush.fill(74, 120, 100, 215);
  brush.beginShape(0.5);
  for (const [x, y] of [[366, 560], [390, 500], [450, 462], [530, 464], [580, 500], [520, 540], [440, 566]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fillBleed(0.22, "out", 60);
  brush.fill(148, 162, 78, 205);
  brush.beginShape(0.5);
  for (const [x, y] of [[366, 580], [310, 530], [230, 520], [160, 548], [210, 584], [290, 596]]) brush.vertex(x, y);
  brush.endShape(true);

  // far petals, then side petals, then the near one on top
  const order = [
    [-90, 258, 46, [224, 78, 90], 200],
    [-24, 262, 42, [240, 104, 96], 200],
    [-160, 262, 42, [246, 120, 100], 200],
    [34, 250, 42, [255, 158, 122], 205],
    [128, 252, 46, [255, 182, 146], 215],
  ];
  for (const [dir, reach, spread, colour, opacity] of order) {
    brush.fillTexture(0.32, 0.35);
    brush.fillBleed(0.28, "out", dir < 0 ? -dir + TILT : 180 - dir);
    brush.fill(...colour, opacity);
    petal(dir, reach, spread);
    brush.fillTexture(0.3, 0.05);
    brush.fillBleed(0.4, "out", -dir - TILT);
    brush.fill(204, 40, 84, 150);
    petal(dir + 5, reach * 0.66, spread * 0.6);
  }

  // veins follow the bowl
  brush.fillTexture(0, 0.2, false);
  brush.fillBleed(0.05);
  brush.fill(186, 40, 80, 110);
  for (const a of [-104, -78, -34, -10, -150, 24, 46, 112, 138]) petal(a, 196, 1.6);

  // throat, a dark oval that the petals plunge into
  brush.fillTexture(0.3, 0.1);
  brush.fillBleed(0.35, "out", 300);
  brush.fill(140, 10, 66, 220);
  brush.beginShape(0);
  for (let a = 0; a < 360; a += 15) brush.vertex(...seen(a, 44 + 18 * cos(a * 5 + 90)));
  brush.endShape(true);

  // column rises towards the viewer's right
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  brush.fill(255, 220, 150, 255);
  ribbon([[298, 272], [326, 226], [368, 176], [420, 136]], 8, 3);
  for (let i = 0; i < 11; i++) {
    const x = 350 + i * 7 + 9 * sin(i * 130), y = 196 - i * 6 + 12 * cos(i * 130);
    brush.fill(...(i > 8 ? [255, 240, 214] : [248, 186, 50]), 255);
    brush.beginShape(1);
    for (let k = 0; k < 360; k += 60) brush.vertex(x + 5 * cos(k), y + 5 * sin(k));
    brush.endShape(true);
  }
}
