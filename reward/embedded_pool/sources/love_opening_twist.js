// Half open: the petals are still wound round one another like a scarf. An upright picture, read from stem to tip.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}

// A panel between two edges, each edge a list of points from base to rim; the rim is ruffled in between.
function panel(left, right, ruffle) {
  const [ax, ay] = left[left.length - 1], [bx, by] = right[right.length - 1];
  brush.beginShape(0.3);
  for (const [x, y] of left) brush.vertex(x, y);
  for (let i = 1; i < 8; i++) {
    const t = i / 8;
    brush.vertex(lerp(ax, bx, t) + 5 * sin(i * 130), lerp(ay, by, t) - ruffle * sin(180 * t) + 8 * sin(i * 145));
  }
  for (const [x, y] of [...right].reverse()) brush.vertex(x, y);
  brush.endShape(true);
}

function tone(colour, opacity, bleed, towards, texture = 0.34, border = 0.3) {
  brush.fill(...colour, opacity);
  brush.fillBleed(bleed, "out", towards);
  brush.fillTexture(texture, border, texture < 0.4);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(250, 246, 240);
  brush.noStroke();

  // air behind, a cool stain that lets the corals sing
  tone([176, 206, 204], 120, 0.5, 200, 0.6, 0.1);
  panel([[330, 520], [420, 420], [440, 300], [420, 180]], [[400, 540], [520, 440], [566, 320], [560, 200]], 70);

  // leaves and stem
  tone([94, 128, 76], 240, 0.06, 180, 0, 0.5);
  panel([[262, 600], [270, 560], [282, 500]], [[280, 600], [288, 560], [304, 500]], 2);
  tone([64, 116, 106], 225, 0.2, 0, 0.4, 0.4);
  panel([[268, 578], [200, 560], [120, 500], [66, 424]], [[268, 586], [220, 530], [150, 450], [66, 424]], 0);
  tone([142, 164, 84], 220, 0.2, 180, 0.4, 0.4);
  panel([[282, 590], [340, 572], [430, 556], [500, 500]], [[282, 596], [360, 598], [460, 586], [500, 500]], 0);

  // furthest panels: only their rims show
  tone([214, 56, 88], 200, 0.28, 90);
  panel([[280, 470], [236, 340], [200, 220], [178, 130]], [[310, 470], [330, 330], [316, 200], [296, 92]], 50);
  tone([222, 72, 92], 200, 0.28, 90);
  panel([[290, 470], [320, 330], [344, 210], [360, 96]], [[316, 470], [400, 350], [448, 240], [470, 168]], 56);
  // winding panels, each lit on its outer edge
  tone([250, 142, 116], 215, 0.28, 20);
  panel([[278, 478], [186, 400], [126, 300], [96, 196]], [[310, 478], [286, 360], [268, 250], [250, 152]], 46);
  tone([228, 78, 90], 150, 0.4, 180, 0.35, 0.05);
  panel([[286, 478], [236, 400], [210, 320], [196, 240]], [[310, 478], [288, 370], [272, 280], [252, 190]], 20);
  tone([255, 160, 126], 215, 0.28, 160);
  panel([[284, 482], [316, 380], [356, 290], [392, 200]], [[318, 480], [430, 410], [492, 330], [520, 232]], 50);
  tone([230, 84, 92], 150, 0.4, 0, 0.35, 0.05);
  panel([[288, 482], [324, 390], [366, 310], [400, 240]], [[314, 482], [380, 420], [430, 350], [458, 280]], 20);
  tone([255, 186, 150], 225, 0.28, 120);
  panel([[272, 486], [220, 400], [206, 300], [222, 226]], [[322, 486], [366, 400], [376, 300], [360, 214]], 40);
  tone([240, 110, 100], 160, 0.4, 90, 0.35, 0.05);
  panel([[276, 486], [246, 410], [240, 330], [256, 280]], [[318, 486], [340, 410], [334, 330], [318, 262]], 18);

  // veins on the near panel
  tone([206, 56, 84], 130, 0.04, 90, 0, 0.2);
  for (const [top, mid] of [[244, 250], [284, 284], [330, 324]]) {
    panel([[294, 470], [mid - 3, 370], [top, 250]], [[300, 470], [mid + 3, 370], [top + 2, 250]], 0);
  }

  // calyx
  tone([112, 142, 80], 240, 0.1, 90, 0.2, 0.5);
  panel([[282, 508], [250, 480], [236, 430]], [[306, 508], [300, 480], [276, 450]], -8);
  panel([[284, 510], [282, 480], [290, 436]], [[308, 510], [318, 480], [312, 444]], 2);
  panel([[284, 508], [300, 480], [326, 452]], [[310, 508], [346, 478], [362, 430]], -8);

  // tip of the column looks over the rim
  tone([255, 216, 140], 255, 0.05, 90, 0, 0.4);
  panel([[300, 200], [306, 140], [318, 62]], [[312, 200], [318, 140], [328, 62]], 3);
  for (let i = 0; i < 8; i++) {
    const x = 318 + 15 * sin(i * 137), y = 130 - i * 9;
    tone(i > 5 ? [206, 36, 70] : [250, 190, 56], 255, 0.05, 90, 0, 0.4);
    panel([[x - 4, y + 5], [x - 6, y]], [[x + 4, y + 5], [x + 6, y]], 6);
  }
}
