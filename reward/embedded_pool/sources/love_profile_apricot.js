// Side view: the funnel opens to the right, petals curl back, the column reaches far out, the calyx holds it at the left.
// Every petal is a brush mark with a bent spine; the list is ordered from the far side to the near side.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const X = 176, Y = 372; // where the petals leave the calyx

function spine(dir, bend, len, t) {
  const a = dir + bend * t * t;
  return [X + len * t * cos(a), Y + len * t * sin(a), a + bend * t];
}

function petal(dir, bend, len, wide, seed) {
  const one = [], two = [];
  for (let t = 0; t <= 1.001; t += 0.05) {
    const [x, y, a] = spine(dir, bend, len, t);
    const open = wide * pow(t, 0.8) * sqrt(max(0, 1 - pow(t, 7))) * (1 + (t > 0.6 ? 0.09 * sin(t * 2600 + seed) : 0));
    one.push([x - sin(a) * open, y + cos(a) * open]);
    two.unshift([x + sin(a) * open * 0.9, y - cos(a) * open * 0.9]);
  }
  brush.beginShape(0.2);
  for (const [x, y] of one.concat(two)) brush.vertex(x, y);
  brush.endShape(true);
}

function hand(points, curve = 0.5) {
  brush.beginShape(curve);
  for (const [x, y] of points) brush.vertex(x, y);
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 246, 238);
  brush.noStroke();

  // stem and leaves
  brush.fillTexture(0.2, 0.5, false);
  brush.fillBleed(0.07, "out", 60);
  brush.fill(96, 128, 76, 240);
  hand([[146, 376], [104, 424], [76, 500], [66, 604], [84, 604], [92, 508], [118, 436], [158, 394]]);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2, "out", 90);
  brush.fill(66, 120, 112, 225);
  hand([[92, 452], [46, 404], [16, 320], [28, 246], [66, 290], [92, 360]]);
  brush.fillBleed(0.2, "out", 180);
  brush.fill(146, 166, 78, 220);
  hand([[82, 540], [140, 508], [210, 516], [264, 562], [190, 584], [120, 574]]);

  const petals = [
    // dir, bend, length, width, body, shade
    [-36, -14, 366, 100, [246, 128, 104], [206, 50, 88]],
    [6, 18, 344, 92, [248, 138, 104], [210, 56, 84]],
    [-68, -26, 320, 102, [255, 176, 126], [238, 104, 92]],
    [40, 16, 262, 92, [255, 166, 120], [236, 96, 90]],
    [-16, 8, 292, 84, [255, 190, 142], [232, 84, 92]],
  ];
  petals.forEach(([dir, bend, len, wide, body, shade], i) => {
    const tip = dir + bend;
    brush.fillTexture(0.34, 0.35);
    brush.fillBleed(0.28, "out", 180 - tip);
    brush.fill(...body, 215);
    petal(dir, bend, len, wide, i * 77);
    brush.fillTexture(0.35, 0.05);
    brush.fillBleed(0.4, "out", -dir);
    brush.fill(...shade, 165);
    petal(dir + 2, bend, len * 0.72, wide * 0.5, i * 40);
  });

  // veins
  brush.fillTexture(0, 0.2, false);
  brush.fillBleed(0.04);
  brush.fill(196, 44, 84, 130);
  for (const [dir, bend, len] of [[-76, -26, 256], [-64, -26, 270], [-41, -14, 300], [-31, -14, 300], [3, 18, 280], [12, 18, 270], [36, 16, 210], [46, 16, 206]]) {
    petal(dir, bend, len, 3, 0);
  }

  // column: out of the funnel and past the petals
  brush.fillTexture(0, 0.5, false);
  brush.fillBleed(0.05);
  brush.fill(255, 214, 134, 255);
  hand([[262, 346], [360, 318], [460, 306], [556, 318], [556, 327], [460, 318], [364, 334], [268, 364]]);
  for (let i = 0; i < 10; i++) {
    const x = 452 + i * 12, y = 311 + 14 * sin(i * 150) + i * 0.8;
    brush.fill(...(i > 7 ? [204, 36, 66] : [248, 182, 44]), 255);
    hand([[x - 5.5, y], [x, y - 5.5], [x + 5.5, y], [x, y + 5.5]], 1);
  }

  // calyx closes the funnel
  brush.fillTexture(0.2, 0.5, false);
  brush.fillBleed(0.1, "out", 0);
  brush.fill(104, 142, 80, 245);
  hand([[142, 382], [156, 354], [178, 342], [220, 330], [200, 356], [232, 370], [202, 382], [212, 410], [178, 402], [154, 400]], 0.3);
}
