// Peonies wet in wet: few corners, and bleed as strong as it goes.
function setup() {
  createCanvas(600, 600, WEBGL);
  angleMode(DEGREES);
  noLoop();
}

const puddle = (x, y, r, squeeze) => {
  brush.beginShape(0);
  for (let k = 0; k < 360; k += 30) brush.vertex(x + r * cos(k), y + r * squeeze * sin(k));
  brush.endShape(true);
};

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 247, 243);
  brush.noStroke();
  brush.fillTexture(0.6, 0.2);
  for (const [x, y, r, a, b] of [[220, 240, 120, "#f2a3b5", "#c9335f"], [390, 330, 110, "#f4b6a0", "#d1503f"], [250, 430, 80, "#e9b7d2", "#a04286"]]) {
    brush.fillBleed(1, "out");
    brush.fill(a, 140);
    puddle(x, y, r, 0.9);
    brush.fillBleed(0.8, "out");
    brush.fill(b, 150);
    puddle(x + 10, y + 12, r * 0.5, 0.8);
  }
  brush.fillBleed(0.9, "out");
  brush.fill("#7fa07a", 130);
  puddle(430, 490, 70, 0.5);
  puddle(120, 380, 60, 0.6);
  brush.fillBleed(0.7, "in");
  brush.fill("#e6c35a", 160);
  puddle(300, 150, 50, 0.8);
}
