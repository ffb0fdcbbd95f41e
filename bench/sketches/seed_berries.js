// rowan berries — many small shapes, nothing larger than a thumb
const berries = [
  [262, 300], [296, 318], [330, 296], [280, 346], [318, 352], [352, 332], [300, 384], [338, 386], [248, 338], [372, 300],
];
const leaves = [
  [210, 220, 205], [170, 246, 190], [232, 176, 250], [396, 226, -28], [430, 250, -5], [372, 178, -68], [300, 176, -92],
];
const reds = ["#d8402f", "#c22f2a", "#e35b3a", "#b3242f"];

const setup = () => { createCanvas(600, 600, WEBGL); angleMode(DEGREES); noLoop(); };

const twig = (pts) => {
  brush.beginShape(0.3);
  pts.forEach(p => brush.vertex(p[0], p[1]));
  brush.endShape(true);
};

const draw = () => {
  translate(-300,-300)
  background("#f8f3e6")
  brush.noStroke()
  brush.fillTexture(0.3,0.4)

  // twigs
  brush.fillBleed(0.05); brush.fill("#6b4a35", 230);
  twig([[150, 90], [160, 84], [250, 190], [312, 270], [306, 276], [240, 196]]);
  twig([[250, 186], [258, 184], [330, 196], [410, 176], [410, 182], [330, 204]]);
  twig([[300, 262], [308, 262], [322, 310], [318, 312]]);
  twig([[290, 250], [296, 252], [276, 300], [270, 298]]);

  // leaflets
  brush.fillBleed(0.18);
  leaves.forEach(([x, y, a], i) => {
    brush.fill(i % 2 ? "#7f9d58" : "#a3a850", 190);
    brush.beginShape(0.6);
    [[0, 0], [20, 13], [44, 14], [74, 0], [46, -12], [20, -13]].forEach(([l, w]) => {
      brush.vertex(x + l * cos(a) - w * sin(a), y + l * sin(a) + w * cos(a));
    });
    brush.endShape(true);
  });

  // fruit
  brush.fillBleed(0.1);
  for (let i = 0; i < berries.length; i++) {
    brush.fill(reds[i % reds.length], 215);
    brush.circle(berries[i][0], berries[i][1], 17 + (i * 7) % 5);
  }
};
