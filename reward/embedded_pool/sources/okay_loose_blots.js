// Loose blots: colour dropped in five places and left alone. Soft, a little shapeless.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function blot(x, y, r, corners) {
  brush.beginShape(0);
  for (let i = 0; i < corners; i++) {
    const a = (i * 360) / corners, s = r * (1 + 0.2 * sin(i * 113 + x));
    brush.vertex(x + s * cos(a), y + s * sin(a));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 247, 241);
  brush.noStroke();

  brush.fillTexture(0.55, 0.25);
  brush.fillBleed(0.5);
  const drops = [[300, 190, 82], [392, 254, 78], [360, 358, 80], [246, 360, 78], [208, 256, 80]];
  drops.forEach(([x, y, r], i) => {
    brush.fill(...(i % 2 ? [250, 156, 136] : [244, 128, 124]), 190);
    blot(x, y, r, 9);
  });
  for (const [x, y, r] of drops) {
    brush.fill(232, 92, 110, 130);
    blot(lerp(x, 300, 0.3), lerp(y, 284, 0.3), r * 0.5, 8);
  }
  brush.fill(216, 70, 104, 190);
  blot(300, 284, 52, 8);
  brush.fill(250, 200, 96, 220);
  blot(304, 280, 20, 8);

  brush.fillBleed(0.4);
  brush.fill(140, 170, 120, 190);
  blot(150, 440, 42, 7);
  brush.fill(110, 154, 124, 190);
  blot(452, 436, 46, 7);
  blot(404, 486, 24, 7);
}
