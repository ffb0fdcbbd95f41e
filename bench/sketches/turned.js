// The same leaf again and again under translate, rotate and uneven scale: a wreath.
function setup() {
  createCanvas(600, 600, WEBGL);
  angleMode(DEGREES);
  noLoop();
}

function leaf() {
  brush.beginShape(0.5);
  for (const [x, y] of [[0, 0], [22, 34], [26, 70], [0, 120], [-24, 72], [-20, 32]]) brush.vertex(x, y);
  brush.endShape(true);
}

function draw() {
  background(249, 246, 238);
  brush.noStroke();
  brush.fillTexture(0.4, 0.4);
  brush.fillBleed(0.16);
  for (let i = 0; i < 14; i++) {
    push();
    rotate(i * (360 / 14));
    translate(0, -170);
    rotate(64 + (i % 3) * 24);
    scale(1 + 0.25 * (i % 2), 0.62 + 0.2 * (i % 3));
    brush.fill(["#6f8f5c", "#8fa765", "#527a66", "#a9ad62"][i % 4], 190);
    leaf();
    pop();
  }
  // berries, squeezed
  for (let i = 0; i < 5; i++) {
    push();
    rotate(20 + i * 72);
    translate(168, 0);
    scale(0.7, 1.25);
    brush.fill("#b8323c", 215);
    brush.circle(0, 0, 18);
    pop();
  }
}
