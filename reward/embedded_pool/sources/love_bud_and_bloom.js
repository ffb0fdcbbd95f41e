// One stem carries a full bloom at the upper right and a closed bud at the lower left; a long diagonal holds the sheet.
// Everything is described in two small tables: petals of the bloom, hand-drawn shapes of the rest.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

function pour(colour, opacity, points, curve = 0.5) {
  brush.fill(...colour, opacity);
  brush.beginShape(curve);
  for (const [x, y] of points) brush.vertex(x, y);
  brush.endShape(true);
}

// Heart-tipped petal: two lobes with a shallow notch between them.
function lobed(x, y, dir, len, wide) {
  const half = [[0, 0], [0.25, 0.34], [0.5, 0.74], [0.74, 0.98], [0.92, 0.86], [1.02, 0.5], [0.98, 0.2]];
  const tip = [0.93, 0];
  const all = [...half.map(([l, w]) => [l, w]), tip, ...half.slice(1).reverse().map(([l, w]) => [l * 0.97, -w * 0.95])];
  return all.map(([l, w]) => [x + cos(dir) * len * l - sin(dir) * wide * w, y + sin(dir) * len * l + cos(dir) * wide * w]);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 247, 238);
  brush.noStroke();
  const cx = 348, cy = 244;

  // stem and leaves
  brush.fillTexture(0.25, 0.5, false);
  brush.fillBleed(0.07, "out", 90);
  pour([92, 126, 74], 235, [[284, 408], [256, 452], [228, 520], [214, 600], [232, 600], [244, 524], [268, 460], [294, 414]]);
  pour([112, 140, 80], 225, [[258, 458], [200, 450], [150, 462], [120, 486], [126, 494], [156, 472], [200, 462], [252, 470]]);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2, "out", 180);
  pour([78, 126, 108], 215, [[262, 500], [330, 452], [416, 450], [490, 486], [520, 530], [440, 532], [350, 526]]);
  pour([48, 98, 96], 130, [[270, 500], [350, 486], [430, 490], [510, 526], [430, 508], [340, 502]]);
  brush.fillBleed(0.2, "out", 0);
  pour([156, 170, 84], 200, [[226, 556], [170, 520], [104, 530], [52, 570], [110, 588], [180, 586]]);

  // bud: furled petals wrapped round each other
  brush.fillBleed(0.2, "out", 300);
  pour([252, 140, 112], 225, [[128, 486], [92, 452], [62, 396], [60, 350], [90, 342], [124, 376], [146, 430], [146, 474]]);
  pour([222, 70, 88], 180, [[130, 484], [104, 440], [76, 380], [72, 348], [100, 358], [122, 410]]);
  brush.fillBleed(0.12, "out", 90);
  pour([98, 138, 80], 235, [[126, 506], [98, 474], [88, 434], [108, 450], [120, 424], [134, 452], [150, 424], [158, 468], [146, 500]]);

  // bloom
  const petals = [
    [-150, 222, 106, [255, 176, 146]],
    [-78, 226, 108, [255, 158, 130]],
    [-6, 220, 104, [250, 138, 118]],
    [134, 206, 104, [255, 168, 134]],
    [64, 214, 106, [244, 122, 106]],
  ];
  for (const [dir, len, wide, colour] of petals) {
    brush.fillTexture(0.35, 0.35);
    brush.fillBleed(0.3, "out", 180 - dir);
    pour(colour, 205, lobed(cx - 8 * cos(dir), cy - 8 * sin(dir), dir, len, wide), 0.3);
    brush.fillTexture(0.3, 0.05);
    brush.fillBleed(0.4, "out", -dir);
    pour([226, 66, 86], 165, lobed(cx - 6 * cos(dir), cy - 6 * sin(dir), dir - 3, len * 0.7, wide * 0.5), 0.3);
  }
  brush.fillTexture(0.3, 0.1);
  for (const [dir] of petals) {
    brush.fillBleed(0.35, "out", -dir);
    pour([150, 14, 66], 215, lobed(cx - 12 * cos(dir), cy - 12 * sin(dir), dir + 4, 104, 24), 0.3);
  }

  // column leans towards the bud, so the two speak
  brush.fillTexture(0, 0.4, false);
  brush.fillBleed(0.05);
  pour([255, 220, 150], 255, [[344, 238], [290, 276], [226, 336], [232, 344], [298, 290], [354, 250]]);
  for (let i = 0; i < 9; i++) {
    const x = 284 - i * 6.6 + 10 * cos(i * 137), y = 288 + i * 6.2 + 11 * sin(i * 137);
    pour(i > 6 ? [206, 44, 66] : [248, 188, 56], 255, [[x - 5, y], [x, y - 5], [x + 5, y], [x, y + 5]], 1);
  }
}
