// Two cosmos flowers seen from the front and from the side, written around a small class.
class Bloom {
  constructor(x, y, size, tilt, tints) {
    this.x = x;
    this.y = y;
    this.size = size;
    this.tilt = tilt;   // 1 = face on, 0.5 = half turned away
    this.tints = tints;
  }

  point(radius, angle) {
    return [this.x + radius * cos(angle), this.y + radius * this.tilt * sin(angle)];
  }

  petal(angle, tint) {
    brush.fill(tint, random(165, 200));
    brush.fillBleed(0.22, "out");
    brush.beginShape(0.5);
    const edge = [[0.12, 0], [0.5, -0.16], [0.92, -0.26], [1.04, -0.1], [0.96, 0], [1.05, 0.12], [0.9, 0.27], [0.5, 0.17]];
    for (const [r, a] of edge) {
      const [x, y] = this.point(this.size * r, angle + a * 1.25);
      brush.vertex(x, y);
    }
    brush.endShape(true);
  }

  paint(petals) {
    for (let i = 0; i < petals; i++) {
      this.petal((TWO_PI * i) / petals + 0.2, this.tints[i % this.tints.length]);
    }
    brush.fillBleed(0.1, "out");
    brush.fill("#e6a92e", 230);
    brush.circle(this.x, this.y, this.size * 0.17);
    brush.fill("#a8641f", 200);
    brush.circle(this.x + 4, this.y + 5, this.size * 0.09);
  }
}

function stem(x0, y0, x1, y1, bend) {
  brush.fill("#7a9355", 215);
  brush.fillBleed(0.06, "out");
  brush.beginShape(0.5);
  const mx = (x0 + x1) / 2 + bend, my = (y0 + y1) / 2;
  for (const [x, y] of [[x0 - 3, y0], [mx - 4, my], [x1 - 5, y1], [x1 + 5, y1], [mx + 4, my], [x0 + 3, y0]]) brush.vertex(x, y);
  brush.endShape(true);
}

function setup() {
  createCanvas(600, 600, WEBGL);
  randomSeed(5);
  noLoop();
}

function draw() {
  background(249, 246, 239);
  brush.noStroke();
  brush.fillTexture(0.4, 0.35);
  stem(-80, -40, -30, 290, -26);
  stem(130, 90, 20, 290, 22);
  // thread-like leaves
  for (const [x, y, s] of [[-40, 160, -1], [-36, 190, 1], [50, 200, 1]]) {
    brush.fill("#8fa765", 190);
    brush.beginShape(0.4);
    for (const [dx, dy] of [[0, 0], [40, -30], [95, -44], [50, -18]]) brush.vertex(x + s * dx, y + dy);
    brush.endShape(true);
  }
  new Bloom(-80, -70, 165, 1, ["#e889b4", "#dd74a6", "#f0a3c3"]).paint(8);
  new Bloom(150, 80, 120, 0.55, ["#c2508c", "#d268a0"]).paint(5);
}
