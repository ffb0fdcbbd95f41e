// A cream-white hibiscus kept white by the blue hour behind it. The ground is a ring of loose marks that stop
// at the petals' rims; inside there is only a violet-grey shade, thin folds and a rose throat.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 292, CY = 304;

// The rim of the whole bloom as one function: five lobes with ruffles.
function rim(a) {
  const lobe = abs(cos(2.5 * (a + 82)));
  return 152 + 62 * pow(lobe, 0.7) + 5 * sin(a * 17) + 4 * sin(a * 29);
}

// Ground mark: hugs the rim on the inside and ends in a wandering edge outside.
function ground(from, to, reach) {
  brush.beginShape(0);
  for (let a = from; a <= to; a += 4) brush.vertex(CX + (rim(a) - 4) * cos(a), CY + (rim(a) - 4) * sin(a));
  for (let a = to; a >= from; a -= 8) {
    const t = (a - from) / (to - from);
    const r = rim(a) + reach * sin(180 * t) * (1 + 0.3 * sin(a * 7)) + 4;
    brush.vertex(CX + r * cos(a), CY + r * sin(a));
  }
  brush.endShape(true);
}

// A piece of the bloom between two angles and two fractions of the rim.
function piece(from, to, near, far) {
  brush.beginShape(0);
  for (let i = 0; i <= 14; i++) {
    const a = lerp(from, to, i / 14), r = rim(a) * far;
    brush.vertex(CX + r * cos(a), CY + r * sin(a));
  }
  for (let i = 5; i >= 0; i--) {
    const a = lerp(from, to, i / 5);
    brush.vertex(CX + rim(a) * near * cos(a), CY + rim(a) * near * sin(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 250, 243);
  brush.noStroke();

  brush.fillTexture(0.42, 0.3, false);
  const marks = [
    [-176, -96, 96, [92, 132, 184], 230],
    [-108, -40, 70, [124, 160, 200], 200],
    [-52, 30, 92, [88, 124, 180], 230],
    [22, 92, 96, [72, 118, 160], 240],
    [84, 150, 84, [96, 146, 152], 220],
    [140, 190, 72, [110, 152, 188], 210],
  ];
  for (const [from, to, reach, colour, opacity] of marks) {
    brush.fillBleed(0.3, "out", -(from + to) / 2);
    brush.fill(...colour, opacity);
    ground(from, to, reach);
  }

  // five petals: violet-grey along the trailing edge, paper for the rest
  brush.fillTexture(0.38, 0.2);
  for (let i = 0; i < 5; i++) {
    const dir = -82 + i * 72;
    brush.fillBleed(0.3, "out", -dir - 40);
    brush.fill(...(i === 1 || i === 2 ? [150, 152, 206] : [196, 184, 214]), 215);
    piece(dir + 10 - 3 * i, dir + 37, 0.1, 0.97);
  }
  // folds
  brush.fillTexture(0, 0.1, false);
  brush.fillBleed(0.05);
  brush.fill(150, 140, 190, 130);
  for (let i = 0; i < 5; i++) {
    piece(-94 + i * 72, -92.8 + i * 72, 0.3, 0.84);
  }

  // throat
  brush.fillTexture(0.3, 0.05);
  for (let i = 0; i < 5; i++) {
    const dir = -82 + i * 72;
    brush.fillBleed(0.4, "out", -dir);
    brush.fill(226, 60, 112, 190);
    piece(dir - 24, dir + 22, 0.01, 0.4 - 0.03 * i);
    brush.fill(176, 12, 76, 215);
    piece(dir - 18, dir + 16, 0.01, 0.22);
  }

  // column
  brush.fillTexture(0, 0.5, false);
  brush.fillBleed(0.05);
  brush.fill(255, 218, 130, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[286, 300], [334, 262], [392, 226], [398, 234], [344, 276], [300, 314]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 6; i++) {
    const x = 340 + i * 10 + 7 * sin(i * 140), y = 260 - i * 6 + 14 * cos(i * 140);
    brush.fill(...(i > 4 ? [206, 40, 84] : [244, 178, 40]), 255);
    brush.beginShape(0);
    for (let k = 0; k < 360; k += 45) brush.vertex(x + 5.5 * cos(k), y + 5.5 * sin(k));
    brush.endShape(true);
  }
}
