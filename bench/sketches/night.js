// Moonflowers: light pigment on dark paper.
function setup() {
  createCanvas(600, 600, WEBGL);
  angleMode(DEGREES);
  noLoop();
}

function star(x, y, size, turn, tint, opacity) {
  brush.fill(tint, opacity);
  brush.beginShape(0.4);
  for (let k = 0; k < 20; k++) {
    const r = size * (0.72 + 0.28 * cos(k * 18 * 5));
    brush.vertex(x + r * cos(k * 18 + turn), y + r * sin(k * 18 + turn));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(26, 30, 52);
  brush.noStroke();
  brush.fillTexture(0.4, 0.3);
  brush.fillBleed(0.3);
  brush.fill(70, 110, 120, 170);
  for (const [x, y, a] of [[160, 420, 200], [330, 470, -20], [430, 380, 30], [240, 250, 140]]) {
    brush.beginShape(0.5);
    for (const [l, w] of [[0, 0], [40, 40], [110, 44], [170, 0], [110, -40], [40, -36]]) {
      brush.vertex(x + l * cos(a) - w * sin(a), y + l * sin(a) + w * cos(a));
    }
    brush.endShape(true);
  }
  brush.fillBleed(0.22);
  for (const [x, y, s] of [[210, 220, 120], [400, 320, 105], [230, 440, 84]]) {
    star(x, y, s, 10, "#dfe4f5", 190);
    star(x, y, s * 0.6, 46, "#b9c4ea", 170);
    brush.fill("#f6e6a0", 230);
    brush.circle(x, y, s * 0.14);
  }
  brush.fill("#f4ecd0", 220);
  brush.circle(480, 110, 46);
}
