// Side view as a half fan: five petals in a row on a cup. Flat colours, one darker touch each.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background(252, 248, 242);
  brush.noStroke();
  const bx = 300, by = 390;

  brush.fillTexture(0.35, 0.4);
  const fan = [[-150, "#f39b86"], [-30, "#f39b86"], [-120, "#f7b092"], [-60, "#f7b092"], [-90, "#ee8a82"]];
  for (const [dir, colour] of fan) {
    brush.fillBleed(0.2);
    brush.fill(colour, 200);
    brush.beginShape(0.4);
    for (const [r, turn] of [[10, 0], [120, -17], [190, -15], [222, -4], [222, 6], [188, 15], [118, 17]]) {
      brush.vertex(bx + r * cos(dir + turn), by + r * sin(dir + turn));
    }
    brush.endShape(true);
    brush.fill("#d9546e", 130);
    brush.beginShape(0.4);
    for (const [r, turn] of [[10, 0], [80, -9], [126, 0], [80, 9]]) {
      brush.vertex(bx + r * cos(dir + turn), by + r * sin(dir + turn));
    }
    brush.endShape(true);
  }

  brush.fillTexture(0.2, 0.5, false);
  brush.fillBleed(0.08);
  brush.fill("#7d9f63", 235);
  brush.beginShape(0.4);
  for (const [x, y] of [[258, 366], [300, 384], [342, 366], [328, 414], [300, 430], [272, 414]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.beginShape(0.2);
  for (const [x, y] of [[294, 424], [290, 510], [296, 596], [308, 596], [304, 510], [306, 424]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fill("#f2c252", 240);
  brush.beginShape(0.2);
  for (const [x, y] of [[296, 200], [298, 126], [304, 126], [306, 200]]) brush.vertex(x, y);
  brush.endShape(true);
  for (let i = 0; i < 5; i++) brush.circle(i % 2 ? 311 : 290, 160 - i * 9, 9);
}
