// Hydrangea made of nothing but circles.
function setup() { createCanvas(600, 600, WEBGL); angleMode(DEGREES); noLoop(); }
function draw() {
  background(250, 248, 243); brush.noStroke();
  brush.fillTexture(0.45, 0.3);
  brush.fillBleed(0.3);
  brush.fill("#9db79a", 130);
  brush.circle(-120, 150, 90); brush.circle(130, 160, 84);
  brush.fillBleed(0.15);
  const tints = ["#8ea2d8", "#a7a0dc", "#7f8fcb", "#c3a6dc", "#93b4de"];
  let n = 0;
  for (let ring = 0; ring < 3; ring++) {
    for (let k = 0; k < 1 + ring * 6; k++) {
      brush.fill(tints[n++ % tints.length], 175);
      brush.circle(ring * 66 * cos(k * 360 / (1 + ring * 6) + ring * 15), -40 + ring * 60 * sin(k * 360 / (1 + ring * 6) + ring * 15), 40 - ring * 3);
    }
  }
}
