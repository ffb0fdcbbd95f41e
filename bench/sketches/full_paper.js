// Fog over a lake: twelve washes, each as wide as the paper, so that no paper is left dry.
function setup() {
  createCanvas(600, 600, WEBGL);
  noLoop();
}

function draw() {
  translate(-width / 2, -height / 2);
  background(246, 244, 238);
  brush.noStroke();
  brush.fillTexture(0.55, 0.15);
  brush.fillBleed(0.25);
  const tints = [[176, 196, 210], [196, 204, 200], [214, 200, 180], [150, 176, 190], [128, 158, 170], [170, 170, 186]];
  for (let i = 0; i < 12; i++) {
    const top = -20 + i * 50;
    brush.fill(...tints[i % tints.length], 100 + 4 * i);
    brush.beginShape(0.5);
    for (let x = -30; x <= 630; x += 110) brush.vertex(x, top + 22 * sin(x * 0.014 + i * 1.9));
    for (let x = 630; x >= -30; x -= 110) brush.vertex(x, top + 150 + 18 * sin(x * 0.018 + i));
    brush.endShape(true);
  }
}
