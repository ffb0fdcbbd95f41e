// A pale flower: one thin layer everywhere, pretty colours, hardly any dark to hold them.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background(252, 248, 240);
  brush.noStroke();
  const cx = 310, cy = 280;

  brush.fillTexture(0.4, 0.5);
  brush.fillBleed(0.3);
  const tints = ["#f7a38c", "#f6b48f", "#f39a94", "#f8b79c", "#f2a08a"];
  tints.forEach((tint, i) => {
    const dir = -80 + i * 72;
    brush.fill(tint, 130);
    brush.beginShape(0);
    for (let a = -34; a <= 34; a += 4) {
      const r = 190 - 0.045 * a * a + 8 * sin(a * 13);
      brush.vertex(cx + r * cos(dir + a), cy + r * sin(dir + a));
    }
    brush.vertex(cx + 10 * cos(dir), cy + 10 * sin(dir));
    brush.endShape(true);
  });
  brush.fill("#e2607c", 130);
  brush.beginShape(0.3);
  for (let a = 0; a < 360; a += 18) {
    const r = 34 + 14 * cos(a * 5 + 40);
    brush.vertex(cx + r * cos(a), cy + r * sin(a));
  }
  brush.endShape(true);

  brush.fillBleed(0.2);
  brush.fill("#9dbb8c", 150);
  for (const [x, y, s] of [[150, 470, 1], [450, 480, -1]]) {
    brush.beginShape(0.5);
    for (const [dx, dy] of [[0, 0], [40, -26], [86, -20], [110, 10], [70, 26], [24, 22]]) brush.vertex(x + s * dx, y + dy);
    brush.endShape(true);
  }
  brush.fillTexture(0, 0.4, false);
  brush.fill("#f3cf6b", 230);
  for (let i = 0; i < 7; i++) brush.circle(cx + 20 + i * 11, cy - 14 - i * 9, 9);
}
