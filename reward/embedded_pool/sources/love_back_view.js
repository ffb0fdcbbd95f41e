// The flower looks away: we see the backs of the petals, the star of the calyx and the light that falls through.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

const CX = 276, CY = 316;

function back(dir, len, wide, phase) {
  const steps = [[0, 0.05], [0.2, 0.3], [0.42, 0.66], [0.64, 0.94], [0.82, 1], [0.95, 0.78], [1.03, 0.4], [1, 0.1]];
  const side = (s) => steps.map(([l, w], i) => {
    const wob = 1 + (i > 3 ? 0.06 : 0) * sin(i * 150 + phase * s);
    return [len * l * wob, s * wide * w * wob];
  });
  brush.beginShape(0.35);
  for (const [l, w] of [...side(1), ...side(-1).reverse()]) {
    brush.vertex(CX + l * cos(dir) - w * sin(dir), CY + l * sin(dir) + w * cos(dir));
  }
  brush.endShape(true);
}

function spike(dir, len, wide) {
  brush.beginShape(0.3);
  for (const [l, w] of [[-0.2, 0.5], [0.3, 1], [0.7, 0.55], [1, 0], [0.7, -0.55], [0.3, -1], [-0.2, -0.5]]) {
    brush.vertex(CX + len * l * cos(dir) - wide * w * sin(dir), CY + len * l * sin(dir) + wide * w * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 247, 239);
  brush.noStroke();

  const turns = [-64, 8, 80, 152, 224];
  const skin = [[255, 190, 164], [252, 168, 146], [246, 142, 128], [250, 160, 142], [255, 198, 170]];
  const glow = [[250, 128, 110], [238, 96, 104], [222, 70, 100], [236, 96, 108], [250, 140, 114]];
  for (const i of [2, 0, 3, 1, 4]) {
    const dir = turns[i], len = [240, 232, 206, 216, 246][i];
    brush.fillTexture(0.35, 0.35);
    brush.fillBleed(0.25, "out", 180 - dir);
    brush.fill(...skin[i], 215);
    back(dir, len, 104, i * 90);
    brush.fillTexture(0.35, 0.05);
    brush.fillBleed(0.4, "out", -dir);
    brush.fill(...glow[i], 165);
    back(dir - 6, len * 0.78, 52, i * 40);
    // ribs stand out on the back of a petal
    brush.fillTexture(0, 0.3, false);
    brush.fillBleed(0.04, "out", -dir);
    brush.fill(206, 60, 92, 135);
    back(dir - 9, len * 0.84, 4, 0);
    back(dir + 9, len * 0.8, 4, 0);
  }

  // shadow of the calyx on the petals, then the calyx
  brush.fillTexture(0.3, 0.05);
  brush.fillBleed(0.4, "out", 140);
  brush.fill(164, 52, 96, 170);
  back(50, 92, 48, 10);
  brush.fillTexture(0.25, 0.5, false);
  for (let i = 0; i < 5; i++) {
    const dir = -28 + i * 72;
    brush.fillBleed(0.1, "out", 180 - dir);
    brush.fill(...(i % 2 ? [126, 150, 76] : [92, 134, 84]), 245);
    spike(dir, 74, 19);
  }

  // stem comes towards us and down
  brush.fillBleed(0.07, "out", 0);
  brush.fill(84, 116, 66, 250);
  brush.beginShape(0.5);
  for (const [x, y] of [[262, 310], [300, 372], [350, 460], [378, 604], [402, 604], [372, 452], [322, 362], [288, 302]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.2, "out", 180);
  brush.fill(70, 122, 112, 225);
  brush.beginShape(0.5);
  for (const [x, y] of [[388, 560], [430, 500], [500, 470], [584, 476], [546, 524], [470, 556]]) brush.vertex(x, y);
  brush.endShape(true);
}
