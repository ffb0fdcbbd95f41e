// Only three petals finished and two sketched in; the stamen is drawn, the rest is left for another day.

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background(252, 248, 241);
  brush.noStroke();

  const done = [
    [[300, 300], [240, 250], [200, 170], [240, 110], [310, 120], [340, 190], [326, 260]],
    [[306, 300], [350, 240], [430, 210], [490, 250], [470, 320], [400, 346], [340, 326]],
    [[304, 308], [360, 350], [390, 420], [350, 476], [284, 464], [266, 390], [284, 336]],
  ];
  const open = [
    [[296, 308], [260, 360], [196, 400], [140, 370], [150, 310], [210, 290]],
    [[294, 298], [230, 280], [166, 270], [132, 220], [170, 180], [230, 220]],
  ];
  const lay = (points, r, g, b, opacity, bleed) => {
    brush.fillBleed(bleed);
    brush.fill(r, g, b, opacity);
    brush.beginShape(0.5);
    for (const [x, y] of points) brush.vertex(x, y);
    brush.endShape(true);
  };
  const towards = (points, t) => points.map(([x, y]) => [lerp(300, x, t), lerp(304, y, t)]);

  brush.fillTexture(0.4, 0.4);
  for (const points of open) lay(points, 252, 190, 166, 150, 0.3);
  for (const points of done) {
    lay(points, 246, 140, 120, 200, 0.22);
    lay(towards(points, 0.55), 220, 70, 96, 160, 0.25);
  }
  lay([[286, 470], [300, 520], [292, 590], [302, 590], [311, 520], [298, 470]], 110, 148, 90, 220, 0.06);
  lay([[308, 540], [350, 500], [420, 500], [450, 530], [390, 548]], 110, 150, 110, 190, 0.2);
  brush.fillTexture(0, 0.4, false);
  lay([[296, 304], [350, 270], [410, 220], [416, 227], [356, 280], [304, 312]], 250, 206, 110, 250, 0.05);
  for (let i = 0; i < 5; i++) lay([[372 + i * 10, 250 - i * 9], [378 + i * 10, 244 - i * 9], [384 + i * 10, 250 - i * 9], [378 + i * 10, 257 - i * 9]], 240, 170, 50, 250, 0.05);
}
