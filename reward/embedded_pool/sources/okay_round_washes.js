// A small pink bloom in the middle of a lot of paper; each petal is one round wash.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background(253, 249, 243);
  brush.noStroke();

  brush.fillTexture(0.45, 0.35);
  brush.fillBleed(0.25);
  brush.fill(246, 130, 150, 190);
  for (let i = 0; i < 5; i++) {
    brush.circle(300 + 66 * cos(-90 + i * 72), 270 + 66 * sin(-90 + i * 72), 60);
  }
  brush.fill(214, 60, 110, 180);
  for (let i = 0; i < 5; i++) {
    brush.circle(300 + 34 * cos(-90 + i * 72), 270 + 34 * sin(-90 + i * 72), 24);
  }
  brush.fill(250, 206, 90, 240);
  brush.circle(300, 270, 18);
  brush.circle(308, 262, 9);

  brush.fillTexture(0.3, 0.4, false);
  brush.fillBleed(0.1);
  brush.fill(96, 140, 96, 210);
  brush.beginShape(0.5);
  for (const [x, y] of [[296, 392], [306, 450], [300, 530], [310, 530], [317, 450], [308, 392]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.beginShape(0.5);
  for (const [x, y] of [[312, 480], [350, 440], [410, 436], [386, 474], [340, 492]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.beginShape(0.5);
  for (const [x, y] of [[302, 506], [262, 470], [204, 470], [228, 504], [272, 520]]) brush.vertex(x, y);
  brush.endShape(true);
}
