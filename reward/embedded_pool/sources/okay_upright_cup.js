// An upright cup, half way to a tulip: three panels, two leaves, everything on the middle line.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function panel(points, r, g, b, opacity) {
  brush.fill(r, g, b, opacity);
  brush.beginShape(0.5);
  for (const [x, y] of points) brush.vertex(x, y);
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 247, 238);
  brush.noStroke();

  brush.fillTexture(0.25, 0.4, false);
  brush.fillBleed(0.08);
  panel([[293, 360], [290, 480], [294, 596], [308, 596], [308, 480], [306, 360]], 110, 146, 80, 225);
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.18);
  panel([[298, 580], [240, 540], [190, 440], [186, 380], [236, 440], [282, 520]], 120, 158, 92, 205);
  panel([[302, 580], [360, 540], [410, 440], [414, 380], [364, 440], [318, 520]], 94, 140, 100, 205);

  panel([[300, 370], [222, 330], [190, 240], [204, 150], [252, 200], [290, 280]], 250, 158, 120, 200);
  panel([[300, 370], [378, 330], [410, 240], [396, 150], [348, 200], [310, 280]], 244, 140, 112, 200);
  panel([[300, 374], [250, 330], [236, 240], [270, 170], [300, 146], [330, 170], [364, 240], [350, 330]], 255, 176, 136, 205);
  panel([[300, 372], [274, 330], [268, 270], [300, 220], [332, 270], [326, 330]], 230, 96, 92, 150);
  panel([[286, 356], [232, 310], [208, 240], [214, 190], [240, 250], [270, 310]], 232, 108, 96, 120);
  panel([[314, 356], [368, 310], [392, 240], [386, 190], [360, 250], [330, 310]], 232, 108, 96, 120);
  brush.fillBleed(0.1);
  panel([[262, 352], [300, 366], [338, 352], [322, 388], [300, 396], [278, 388]], 112, 150, 86, 235);
  brush.fillTexture(0, 0.4, false);
  panel([[294, 160], [296, 110], [304, 110], [306, 160]], 250, 206, 120, 250);
  for (const [x, y] of [[291, 134], [309, 124], [293, 112], [306, 102]]) {
    brush.fill(246, 186, 70, 250);
    brush.circle(x, y, 8);
  }
}
