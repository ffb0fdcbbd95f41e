// A violet on a card of 240 x 240.
function setup() { createCanvas(240, 240, WEBGL); angleMode(DEGREES); noLoop(); }

function draw() {
  background(252, 250, 244);
  brush.noStroke();
  brush.fillTexture(0.35, 0.4);
  brush.fillBleed(0.2);
  brush.fill(118, 150, 92, 200);
  brush.beginShape(0.5);
  for (const [x, y] of [[-3, 10], [3, 10], [10, 60], [6, 108], [-2, 108], [3, 60]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.beginShape(0.5);
  for (const [x, y] of [[8, 84], [40, 56], [84, 62], [70, 92], [34, 100]]) brush.vertex(x, y);
  brush.endShape(true);
  const tints = ["#8f6cc0", "#7d59b2", "#a184cc", "#6d4aa3", "#9372c4"];
  for (let i = 0; i < 5; i++) {
    const a = -90 + i * 72;
    brush.fill(tints[i], 185);
    brush.beginShape(0.6);
    for (const [r, d] of [[6, 0], [40, -28], [64, -16], [68, 10], [42, 27]]) brush.vertex(r * cos(a + d), -16 + r * sin(a + d));
    brush.endShape(true);
  }
  brush.fill("#f0c040", 235);
  brush.circle(0, -16, 9);
}
