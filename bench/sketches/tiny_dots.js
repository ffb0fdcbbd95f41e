// mimosa: sixty yellow dots along three arching twigs

let dots = [];

function twig(x0, y0, dx, dy, sag) {
  for (let i = 0; i < 20; i++) {
    let t = i / 19;
    dots.push({
      x: x0 + dx * t + (i % 3 - 1) * 9,
      y: y0 + dy * t + sag * t * t + (i % 2 ? 8 : -7),
      r: 3 + (i * 5) % 4
    });
  }
}

function setup() {
  createCanvas(600, 600, WEBGL);
  twig(120, 160, 340, -20, 170);
  twig(140, 180, 250, 60, 190);
  twig(150, 140, 350, -60, 90);
  noLoop();
}

function draw() {
  translate(-width / 2, -height / 2);
  background(247, 245, 236);
  brush.noStroke();
  brush.fillTexture(0.2, 0.3);
  brush.fillBleed(0.05);
  brush.fill(120, 140, 90, 200);
  for (const [dx, dy] of [[340, 150], [250, 250], [350, 30]]) {
    brush.beginShape(0.3);
    brush.vertex(112, 160); brush.vertex(120 + dx / 2, 148 + dy / 3); brush.vertex(130 + dx, 160 + dy); brush.vertex(118 + dx / 2, 154 + dy / 3);
    brush.endShape(true);
  }
  for (const d of dots) {
    brush.fill(d.r > 4 ? "#f2c430" : "#f7d866", 220);
    brush.circle(d.x, d.y, d.r);
  }
}
