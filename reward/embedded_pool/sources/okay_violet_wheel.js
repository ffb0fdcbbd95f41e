// Blue-violet experiment: cool petals over a yellow centre. The hues are fine, the drawing is mechanical.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function wedge(cx, cy, from, to, near, far) {
  brush.beginShape(0);
  for (let i = 0; i <= 10; i++) {
    const a = lerp(from, to, i / 10), r = far * (0.86 + 0.14 * sin(18 * i));
    brush.vertex(cx + r * cos(a), cy + r * sin(a));
  }
  brush.vertex(cx + near * cos(to), cy + near * sin(to));
  brush.vertex(cx + near * cos(from), cy + near * sin(from));
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 248, 244);
  brush.noStroke();
  const cx = 300, cy = 280;

  brush.fillTexture(0.4, 0.5);
  brush.fillBleed(0.18);
  brush.fill(120, 164, 140, 190);
  wedge(cx, cy, 60, 84, 200, 290);
  wedge(cx, cy, 110, 134, 200, 280);
  wedge(cx, cy, 94, 99, 190, 310);
  for (let i = 0; i < 5; i++) {
    const from = -124 + i * 72;
    brush.fill(...(i % 2 ? [186, 160, 222] : [206, 164, 214]), 215);
    wedge(cx, cy, from, from + 64, 26, 196);
    brush.fill(150, 96, 190, 150);
    wedge(cx, cy, from + 16, from + 48, 26, 124);
  }
  brush.fill(252, 214, 110, 235);
  brush.circle(cx, cy, 34);
  brush.fill(224, 120, 90, 190);
  brush.circle(cx, cy, 16);
}
