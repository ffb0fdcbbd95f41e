// Paper cut: no texture and hardly any bleed, so that the shapes stay flat.
function setup() {
  createCanvas(600, 600, WEBGL);
  noLoop();
}

function draw() {
  background(244, 238, 226);
  brush.noStroke();
  brush.fillTexture(0, 0, false);
  brush.fillBleed(0.01);
  const bowl = [[-190, 60], [190, 60], [150, 190], [70, 240], [-70, 240], [-150, 190]];
  const fruit = [[-110, 10, 68, "#d6482f"], [0, -26, 78, "#e8a13a"], [112, 8, 66, "#b9c24a"], [-46, -120, 54, "#d97a2e"], [60, -118, 50, "#a63a3f"]];
  for (const [x, y, r, tint] of fruit) {
    brush.fill(tint, 220);
    brush.circle(x, y, r);
  }
  brush.fill("#4d6a8a", 230);
  brush.beginShape(0);
  bowl.forEach(([x, y]) => brush.vertex(x, y));
  brush.endShape(true);
  brush.fill("#f0d9b0", 220);
  for (let i = 0; i < 4; i++) {
    brush.beginShape(0);
    const x = -110 + i * 72;
    brush.vertex(x - 22, 130); brush.vertex(x, 100); brush.vertex(x + 22, 130); brush.vertex(x, 160);
    brush.endShape(true);
  }
}
