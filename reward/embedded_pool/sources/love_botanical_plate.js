// A botanical plate: crisp edges, low bleed, every part legible. Bloom, bud, serrate leaves and a stem with joints.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

function outline(points, curve = 0) {
  brush.beginShape(curve);
  for (const [x, y] of points) brush.vertex(x, y);
  brush.endShape(true);
}

// Local (along, across) to sheet coordinates.
const place = (x, y, dir) => ([l, w]) => [x + l * cos(dir) - w * sin(dir), y + l * sin(dir) + w * cos(dir)];

function petal(x, y, dir, len, wide, skew) {
  const points = [];
  for (let k = 0; k < 360; k += 8) {
    const u = (1 - cos(k)) / 2;
    const frill = u > 0.6 ? (u - 0.6) * 0.16 * sin(k * 9 + skew * 40) : 0;
    points.push([len * (u + frill), wide * sin(k) * pow(u, 0.75) + skew * len * u * u]);
  }
  outline(points.map(place(x, y, dir)));
}

// A serrate leaf: teeth along both margins, drawn as two halves of different temperature.
function leaf(x, y, dir, len, wide, warm, cool) {
  for (const side of [1, -1]) {
    const points = [[0, 0]];
    for (let t = 0.06; t < 1; t += 0.06) {
      const tooth = round(t / 0.06) % 2 ? 1 : 0.88;
      points.push([len * t, side * wide * sin(180 * pow(t, 0.8)) * tooth]);
    }
    points.push([len, 0], [len * 0.5, side * 2]);
    brush.fillBleed(0.06, "out", -dir);
    brush.fill(...(side > 0 ? warm : cool), 225);
    outline(points.map(place(x, y, dir)));
  }
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 250, 242);
  brush.noStroke();

  // stem with a side shoot
  brush.fillTexture(0, 0.6, false);
  brush.fillBleed(0.04, "out", 180);
  brush.fill(112, 134, 72, 240);
  outline([[306, 402], [314, 450], [304, 520], [312, 596], [324, 596], [318, 522], [326, 450], [318, 400]], 0.4);
  outline([[314, 470], [370, 440], [432, 388], [462, 330], [468, 334], [440, 394], [376, 450], [318, 480]], 0.4);

  brush.fillTexture(0.25, 0.5);
  leaf(310, 520, 158, 190, 46, [88, 132, 96], [132, 158, 82]);
  leaf(318, 548, 22, 190, 42, [132, 158, 82], [78, 124, 104]);
  leaf(390, 430, 40, 120, 30, [146, 166, 84], [98, 140, 92]);

  // bud
  brush.fillBleed(0.06, "out", 60);
  brush.fill(244, 116, 100, 235);
  outline([[452, 320], [452, 270], [474, 222], [500, 200], [510, 226], [504, 280], [484, 322]], 0.5);
  brush.fill(206, 48, 84, 170);
  outline([[470, 318], [474, 270], [494, 222], [504, 214], [500, 270], [484, 318]], 0.5);
  brush.fill(104, 142, 84, 240);
  outline([[446, 338], [440, 290], [456, 306], [468, 276], [476, 306], [496, 286], [492, 330], [470, 350]], 0.2);

  // bloom: five petals, each a base tone, a half tone along one side, and veins
  const cx = 262, cy = 244;
  const tones = [[255, 172, 140], [252, 150, 124], [250, 158, 128], [255, 178, 144], [252, 146, 120]];
  for (const i of [3, 1, 4, 2, 0]) {
    const dir = -90 + i * 72 - 8;
    brush.fillTexture(0.25, 0.6);
    brush.fillBleed(0.08, "out", -dir);
    brush.fill(...tones[i], 235);
    petal(cx, cy, dir, 206, 104, 0.12);
    brush.fillTexture(0.2, 0.1);
    brush.fillBleed(0.16, "out", -dir);
    brush.fill(232, 88, 92, 150);
    petal(cx, cy, dir + 12, 176, 34, 0.1);
    brush.fillTexture(0, 0.3, false);
    brush.fillBleed(0.02);
    brush.fill(196, 50, 80, 130);
    petal(cx, cy, dir - 5, 168, 3.5, 0.1);
  }
  brush.fillTexture(0.1, 0.2, false);
  brush.fillBleed(0.1);
  brush.fill(158, 16, 66, 225);
  for (let i = 0; i < 5; i++) petal(cx - 6 * cos(i * 72 - 98), cy - 6 * sin(i * 72 - 98), i * 72 - 98, 62, 15, 0.1);

  // column
  brush.fillTexture(0, 0.5, false);
  brush.fillBleed(0.03);
  brush.fill(255, 226, 160, 255);
  outline([[256, 244], [228, 200], [186, 152], [192, 146], [238, 192], [270, 238]], 0.5);
  for (let i = 0; i < 5; i++) {
    const x = 226 - i * 7 + 10 * sin(i * 135), y = 192 - i * 8.4 + 10 * cos(i * 135);
    brush.fill(...(i > 4 ? [200, 36, 66] : [244, 186, 50]), 255);
    outline([[x - 4.5, y], [x, y - 4.5], [x + 4.5, y], [x, y + 4.5]], 1);
  }
}
