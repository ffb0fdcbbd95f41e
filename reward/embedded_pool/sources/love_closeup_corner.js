// Seen so close that the sheet cannot hold it: the heart sits in the lower left, three petals sweep out of it.
// Long veins carry the eye along each petal to the open paper at the upper right.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const HX = 168, HY = 436;

function sweep(dir, len, wide, wave) {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 8) {
    const u = (1 - cos(k)) / 2;
    const frill = 1 + u * u * (0.05 * sin(k * 5 + wave) + 0.03 * sin(k * 11));
    const l = len * u * frill, w = wide * sin(k) * pow(u, 0.45);
    brush.vertex(HX + l * cos(dir) - w * sin(dir), HY + l * sin(dir) + w * cos(dir));
  }
  brush.endShape(true);
}

// A vein is a hair that leaves the heart and bends outwards.
function vein(dir, len, bend, w) {
  brush.beginShape(0.6);
  for (const [t, s] of [[0.1, w], [0.5, w * 0.8], [1, 0], [0.5, -w * 0.8], [0.1, -w]]) {
    const a = dir + bend * t * t;
    brush.vertex(HX + len * t * cos(a) - s * sin(a), HY + len * t * sin(a) + s * cos(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 247, 240);
  brush.noStroke();

  const petals = [
    [-108, 400, 132, [252, 158, 136], [232, 78, 100], 10],
    [28, 380, 128, [250, 134, 112], [224, 66, 90], 200],
    [-40, 428, 150, [255, 172, 140], [240, 96, 100], 90],
  ];
  for (const [dir, len, wide, light, deep, wave] of petals) {
    brush.fillTexture(0.35, 0.3);
    brush.fillBleed(0.25, "out", 180 - dir);
    brush.fill(...light, 195);
    sweep(dir, len, wide, wave);
    brush.fillTexture(0.35, 0.05);
    brush.fillBleed(0.4, "out", -dir);
    brush.fill(...deep, 150);
    sweep(dir + 3, len * 0.74, wide * 0.6, wave);
    brush.fill(190, 24, 84, 180);
    sweep(dir, len * 0.42, wide * 0.4, wave + 40);
  }
  // slivers of the two petals that leave the sheet
  brush.fillBleed(0.3, "out", 0);
  brush.fill(240, 110, 106, 190);
  sweep(176, 230, 84, 70);
  brush.fill(246, 128, 112, 190);
  sweep(100, 220, 84, 30);

  brush.fillTexture(0, 0.2, false);
  brush.fillBleed(0.04);
  brush.fill(192, 36, 84, 130);
  for (const [dir, len, bend] of [[-116, 310, -8], [-98, 300, 8], [-52, 340, -9], [-40, 370, 0], [-28, 340, 9], [20, 300, -7], [36, 290, 9]]) {
    vein(dir, len, bend, 3.6);
  }

  // heart
  brush.fillTexture(0.3, 0.05);
  brush.fillBleed(0.35, "out", 30);
  brush.fill(130, 8, 66, 225);
  brush.beginShape(0.4);
  for (let k = 0; k < 360; k += 24) {
    const r = 40 + 7 * cos(k * 5 + 190);
    brush.vertex(HX + r * cos(k), HY + r * sin(k));
  }
  brush.endShape(true);

  // the column is the diagonal of the picture
  brush.fillTexture(0, 0.5, false);
  brush.fillBleed(0.05, "out", 0);
  brush.fill(255, 214, 140, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[160, 430], [252, 374], [330, 300], [392, 216], [402, 222], [344, 310], [262, 386], [178, 448]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 11; i++) {
    const x = 306 + i * 8.4 + 19 * sin(i * 137), y = 324 - i * 10.4 + 15 * cos(i * 137);
    brush.fill(...(i > 8 ? [206, 36, 66] : [248, 184, 44]), 255);
    brush.beginShape(0);
    for (let k = 0; k < 360; k += 40) brush.vertex(x + (7 + (i % 3)) * cos(k), y + (7 + (i % 3)) * sin(k));
    brush.endShape(true);
  }
}
