// Deep crimson, loaded brush: the full range from a pale wet rim to a nearly black throat.
// The bloom leans out of the upper right; each petal is three nested pours of the same closed curve.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 332, CY = 258;

// Control points of one petal in its own frame, x along, y across; skew makes it turn like a sail.
function sail(dir, size, wide, skew) {
  const frame = [[0.02, 0.04], [0.24, 0.34], [0.5, 0.8], [0.74, 1.02], [0.93, 0.88], [1.0, 0.52], [0.94, 0.24], [1.02, -0.04], [0.98, -0.42], [0.86, -0.84], [0.66, -0.96], [0.42, -0.66], [0.2, -0.26]];
  return frame.map(([l, w]) => {
    const along = size * l, across = wide * w + skew * size * l * l;
    return [CX + along * cos(dir) - across * sin(dir), CY + along * sin(dir) + across * cos(dir)];
  });
}

function pour(points, colour, opacity, bleed, towards) {
  brush.fillBleed(bleed, "out", towards);
  brush.fill(...colour, opacity);
  brush.beginShape(0.4);
  for (const [x, y] of points) brush.vertex(x, y);
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 246, 239);
  brush.noStroke();

  // warm dust of colour under the bloom
  brush.fillTexture(0.65, 0.1);
  pour([[90, 300], [240, 110], [460, 70], [560, 260], [470, 460], [240, 500]], [255, 206, 186], 110, 0.5, 60);

  // stem and leaves run to the lower left
  brush.fillTexture(0.25, 0.5, false);
  pour([[236, 420], [190, 480], [136, 540], [84, 600], [106, 602], [156, 548], [206, 490], [248, 430]], [74, 104, 62], 245, 0.07, 0);
  brush.fillTexture(0.4, 0.4);
  pour([[170, 508], [110, 494], [40, 440], [14, 380], [80, 392], [150, 446]], [58, 106, 92], 235, 0.2, 0);
  pour([[166, 530], [240, 500], [330, 510], [400, 560], [310, 584], [220, 566]], [112, 136, 64], 225, 0.2, 180);
  brush.fillTexture(0, 0.2, false);
  pour([[166, 502], [110, 460], [40, 404], [112, 466]], [36, 80, 74], 150, 0.04, 0);
  pour([[176, 532], [270, 530], [370, 552], [270, 536]], [70, 100, 50], 150, 0.04, 180);

  const petals = [
    [-58, 228, 104, 0.1, [240, 84, 96]],
    [14, 226, 102, 0.1, [226, 56, 80]],
    [-130, 230, 104, 0.1, [248, 104, 104]],
    [86, 218, 102, 0.1, [214, 40, 76]],
    [158, 240, 106, 0.1, [236, 70, 88]],
  ];
  for (const [dir, size, wide, skew, colour] of petals) {
    brush.fillTexture(0.32, 0.4);
    pour(sail(dir, size, wide, skew), colour, 235, 0.28, 180 - dir);
    brush.fillTexture(0.36, 0.05);
    pour(sail(dir + 3, size * 0.78, wide * 0.66, skew), [184, 18, 64], 190, 0.4, -dir);
    pour(sail(dir + 4, size * 0.48, wide * 0.36, skew), [110, 4, 48], 215, 0.45, -dir);
  }

  // throat
  brush.fillTexture(0.2, 0.05);
  const core = [];
  for (let k = 0; k < 360; k += 30) core.push([CX + (24 + 5 * sin(k * 3)) * cos(k), CY + (24 + 5 * sin(k * 3)) * sin(k)]);
  pour(core, [70, 0, 36], 230, 0.4, 0);

  // column against the dark, gold on crimson
  brush.fillTexture(0, 0.5, false);
  pour([[326, 262], [290, 320], [238, 376], [246, 384], [300, 330], [342, 270]], [255, 214, 130], 255, 0.05, 90);
  for (let i = 0; i < 7; i++) {
    const x = 286 - i * 8 + 13 * cos(i * 140), y = 328 + i * 8 + 11 * sin(i * 140), r = 6;
    pour([[x - r, y], [x, y - r], [x + r, y], [x, y + r]], i > 5 ? [255, 236, 214] : [252, 192, 50], 255, 0.05, 90);
  }
}
