// Eight narrow petals like a daisy's, coral on cream. Even spacing all round.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function ray(dir, near, far, wide) {
  brush.beginShape(0.6);
  for (const [r, w] of [[near, -0.3], [(near + far) / 2, -1], [far * 0.93, -0.8], [far, 0], [far * 0.93, 0.8], [(near + far) / 2, 1], [near, 0.3]]) {
    brush.vertex(300 + r * cos(dir) - w * wide * sin(dir), 290 + r * sin(dir) + w * wide * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 245, 232);
  brush.noStroke();

  brush.fillTexture(0.4, 0.3);
  brush.fillBleed(0.2);
  for (let i = 0; i < 4; i++) {
    brush.fill(130, 164, 110, 190);
    ray(45 + i * 90, 150, 240, 26);
  }
  for (let i = 0; i < 8; i++) {
    brush.fill(...(i % 2 ? [250, 144, 116] : [238, 110, 104]), 195);
    ray(i * 45 - 90, 24, 186, 40);
  }
  brush.fill(176, 40, 80, 200);
  brush.beginShape(0);
  for (let a = 0; a < 360; a += 20) brush.vertex(300 + 36 * cos(a), 290 + 36 * sin(a));
  brush.endShape(true);
  brush.fill(248, 200, 80, 240);
  for (let i = 0; i < 6; i++) brush.circle(300 + 20 * cos(i * 60), 290 + 20 * sin(i * 60), 9);
}
