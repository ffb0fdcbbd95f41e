// A meadow of forty marks: grass, stalks, and three kinds of flower heads. Everything is drawn from a seeded random.
function setup() {
  createCanvas(600, 600, WEBGL);
  randomSeed(21);
  noLoop();
}

const heads = {
  poppy: ["#e0452f", "#ee6a48"],
  cornflower: ["#4f6fc0", "#6a86d0"],
  daisy: ["#f2dfae", "#eed08a"],
};

function blade(x, y, h, lean, w) {
  brush.beginShape(0.5);
  brush.vertex(x - w, y);
  brush.vertex(x - w * 0.6 + lean * 0.4, y - h * 0.55);
  brush.vertex(x + lean, y - h);
  brush.vertex(x + w * 0.6 + lean * 0.4, y - h * 0.5);
  brush.vertex(x + w, y);
  brush.endShape(true);
}

function head(kind, x, y, r) {
  brush.fill(random(heads[kind]), random(170, 215));
  brush.beginShape(0.5);
  const n = kind === "cornflower" ? 14 : 10;
  for (let i = 0; i < n; i++) {
    const a = (TWO_PI * i) / n;
    const q = r * (kind === "cornflower" && i % 2 ? 0.6 : random(0.88, 1.1));
    brush.vertex(x + q * cos(a), y + 0.75 * q * sin(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(248, 247, 240);
  brush.noStroke();
  brush.fillTexture(0.4, 0.3);

  // two distant washes
  brush.fillBleed(0.4);
  brush.fill(190, 208, 170, 120);
  brush.beginShape(0.4);
  for (const [x, y] of [[20, 400], [200, 372], [420, 380], [580, 396], [580, 580], [20, 580]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fill(168, 196, 210, 90);
  brush.beginShape(0.4);
  for (const [x, y] of [[60, 60], [300, 40], [540, 70], [520, 180], [260, 210], [80, 170]]) brush.vertex(x, y);
  brush.endShape(true);

  for (let i = 0; i < 18; i++) {
    brush.fillBleed(0.06);
    brush.fill(random(["#7f9b55", "#98ad62", "#6a8a58"]), random(150, 205));
    blade(40 + i * 31 + random(-10, 10), 570, random(150, 330), random(-40, 40), random(4, 8));
  }
  const kinds = Object.keys(heads);
  for (let i = 0; i < 20; i++) {
    brush.fillBleed(random(0.1, 0.25));
    head(kinds[i % 3], 50 + (i * 97) % 510, 230 + ((i * 61) % 210), random(14, 34));
  }
}
