// A lilac hibiscus in cool light: violet shade turns the forms, thin pooled edges hold them,
// a blue-green ground stands behind the lit side, and only the heart carries full colour.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 316, CY = 290;

// Petal from the heart outwards, its rim waved by two sines.
function petal(dir, reach, spread) {
  brush.beginShape(0);
  brush.vertex(CX, CY);
  for (let i = 0; i <= 18; i++) {
    const e = i / 9 - 1, a = dir + e * spread;
    const r = reach * (1 - 0.36 * pow(abs(e), 2.8)) * (1 + 0.035 * sin(a * 9) + 0.02 * sin(a * 17));
    brush.vertex(CX + r * cos(a), CY + r * sin(a));
  }
  brush.endShape(true);
}

function blob(x, y, rx, ry, turn) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 20) {
    const r = 1 + 0.16 * sin(k * 3 + turn) + 0.08 * sin(k * 5 - turn);
    brush.vertex(x + rx * r * cos(k), y + ry * r * sin(k));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 251, 246);
  brush.noStroke();

  // ground on the lit side, leaves on the shadow side
  brush.fillTexture(0.5, 0.15);
  brush.fillBleed(0.45, "out", 60);
  brush.fill(150, 188, 204, 150);
  blob(130, 160, 110, 120, 20);
  brush.fillBleed(0.45, "out", 20);
  brush.fill(164, 196, 178, 140);
  blob(130, 440, 110, 90, 150);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.25, "out", 150);
  brush.fill(84, 130, 122, 215);
  blob(500, 486, 76, 34, 40);
  brush.fill(120, 152, 100, 200);
  blob(410, 540, 34, 56, 100);

  const petals = [[-96, 236, 42], [-22, 226, 40], [192, 244, 42], [50, 214, 40], [122, 226, 41]];
  // a body of almost nothing, with its drying line
  for (const [dir, reach, spread] of petals) {
    brush.fillTexture(0.2, 1, false);
    brush.fillBleed(0.14, "out", 180 - dir);
    brush.fill(...(dir > 0 && dir < 130 ? [214, 214, 238] : [238, 224, 232]), 255);
    petal(dir, reach, spread);
  }
  // shade: cool at the base, deeper on the petals turned from the light
  petals.forEach(([dir, reach, spread], i) => {
    brush.fillTexture(0.36, 0.1);
    brush.fillBleed(0.36, "out", -dir);
    brush.fill(...(i % 2 ? [160, 156, 212] : [182, 172, 220]), 120 + i * 16);
    petal(dir + 7, reach * 0.94, spread * 0.8);
  });

  // rose heart
  brush.fillTexture(0.3, 0.05);
  for (const [dir] of petals) {
    brush.fillBleed(0.45, "out", -dir);
    brush.fill(236, 84, 128, 190);
    petal(dir, 98, 24);
    brush.fill(182, 14, 78, 210);
    petal(dir + 4, 58, 22);
  }

  // column and pollen
  brush.fillTexture(0, 0.5, false);
  brush.fillBleed(0.05);
  brush.fill(255, 226, 160, 255);
  brush.beginShape(0.6);
  for (const [x, y] of [[310, 296], [276, 336], [242, 404], [250, 410], [288, 348], [326, 304]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 6; i++) {
    brush.fill(...(i > 4 ? [206, 40, 84] : [244, 186, 56]), 255);
    blob(278 - i * 7 + 12 * cos(i * 150), 346 + i * 11 + 7 * sin(i * 150), 5.8, 5.8, i * 30);
  }
}
