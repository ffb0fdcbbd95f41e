// Backlit: the sun stands behind the bloom. The heart glows pale yellow and the rims are the darkest parts,
// so light and dark are turned round compared with a flower lit from the front.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 318, CY = 306;

// Band of a petal between two radii, open towards the heart.
function band(dir, near, far, spread) {
  const reach = (e) => far * (1 - 0.34 * pow(abs(e), 2.6)) * (1 + 0.04 * sin(e * 430 + dir) + 0.025 * sin(e * 990));
  brush.beginShape(0);
  for (let i = 0; i <= 16; i++) {
    const e = i / 8 - 1, r = reach(e);
    brush.vertex(CX + r * cos(dir + e * spread), CY + r * sin(dir + e * spread));
  }
  for (let i = 8; i >= 0; i--) {
    const e = i / 4 - 1;
    const r = near * (1 + 0.3 * pow(abs(e), 2) + 0.12 * sin(i * 113 + dir));
    brush.vertex(CX + r * cos(dir + e * spread), CY + r * sin(dir + e * spread));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(253, 247, 230);
  brush.noStroke();

  // halo: a warm wash wider than the flower
  brush.fillTexture(0.6, 0.05);
  brush.fillBleed(0.5);
  brush.fill(255, 232, 170, 90);
  band(0, 4, 262, 180);

  const dirs = [-112, -40, 32, 104, 176];
  const hues = [[250, 152, 70], [246, 124, 70], [240, 108, 84], [248, 138, 78], [252, 160, 84]];
  dirs.forEach((dir, i) => {
    brush.fillTexture(0.35, 0.3);
    brush.fillBleed(0.3, "out", 180 - dir);
    brush.fill(...hues[i], 190);
    band(dir, 22, 244 - (i % 2) * 18, 37);
  });
  dirs.forEach((dir, i) => {
    brush.fillTexture(0.4, 0.1);
    brush.fillBleed(0.4, "out", 180 - dir);
    brush.fill(...(i % 2 ? [214, 60, 72] : [226, 76, 60]), 165);
    band(dir + 5, 128, 240 - (i % 2) * 18, 29);
  });
  // thin rays of vein, translucent red
  brush.fillTexture(0, 0.2, false);
  brush.fillBleed(0.04);
  brush.fill(214, 70, 60, 140);
  dirs.forEach((dir) => {
    band(dir - 9, 30, 176, 0.9);
    band(dir + 12, 30, 166, 0.9);
  });

  // dark column against the light, and leaves in silhouette
  brush.fillBleed(0.06);
  brush.fill(158, 36, 70, 255);
  brush.beginShape(0.5);
  for (const [x, y] of [[312, 300], [276, 330], [222, 396], [230, 402], [284, 344], [324, 312]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 7; i++) {
    brush.fill(...(i % 2 ? [190, 60, 50] : [255, 224, 130]), 255);
    const x = 262 - i * 6.5 + 11 * sin(i * 150), y = 348 + i * 7.4 + 9 * cos(i * 150);
    brush.beginShape(0);
    for (let k = 0; k < 360; k += 45) brush.vertex(x + 5.5 * cos(k), y + 5.5 * sin(k));
    brush.endShape(true);
  }
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2, "out", 180);
  brush.fill(92, 118, 60, 225);
  brush.beginShape(0.5);
  for (const [x, y] of [[452, 500], [496, 486], [556, 510], [596, 560], [540, 566], [480, 544]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fillBleed(0.2, "out", 0);
  brush.fill(128, 140, 58, 215);
  brush.beginShape(0.5);
  for (const [x, y] of [[150, 486], [110, 480], [50, 512], [16, 566], [76, 568], [130, 536]]) brush.vertex(x, y);
  brush.endShape(true);
}
