// A close-up: the bloom is larger than the paper and runs off it on all four sides.
function setup() {
  createCanvas(600, 600, WEBGL);
  angleMode(DEGREES);
  noLoop();
}

function petal(dir, reach, wide) {
  brush.beginShape(0.5);
  for (let i = 0; i < 12; i++) {
    const t = i * 30;
    const l = reach * 0.5 * (1 - cos(t));
    const w = wide * sin(t);
    brush.vertex(470 + l * cos(dir) - w * sin(dir), 450 + l * sin(dir) + w * cos(dir));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(251, 246, 236);
  brush.noStroke();
  brush.fillTexture(0.45, 0.35);
  brush.fillBleed(0.2);
  brush.fill("#8fa967", 180);
  brush.beginShape(0.4);
  for (const [x, y] of [[-120, 420], [60, 380], [180, 470], [120, 700], [-90, 680]]) brush.vertex(x, y);
  brush.endShape(true);
  const tints = ["#f6a06a", "#f28a58", "#f8b584"];
  for (let i = 0; i < 7; i++) {
    brush.fill(tints[i % 3], 185);
    petal(i * 51 + 12, 560, 150);
  }
  brush.fill("#d9503a", 170);
  for (let i = 0; i < 7; i++) petal(i * 51 + 30, 260, 54);
  brush.fill("#6b2a34", 220);
  brush.circle(470, 450, 62);
  brush.fill("#e9c24e", 220);
  brush.circle(590, 20, 50);
}
