// poppy, loose
function setup() {
  createCanvas(600, 600, WEBGL);
  angleMode(DEGREES);
}

function blob(x, y, rx, ry, rot) {
  brush.beginShape(0.5);
  for (let a = 0; a < 360; a += 30) {
    let r = 1 + 0.1 * sin(a * 3 + rot);
    let px = rx * r * cos(a);
    let py = ry * r * sin(a);
    brush.vertex(x + px * cos(rot) - py * sin(rot), y + px * sin(rot) + py * cos(rot));
  }
  brush.endShape(true);
}

function draw() {
  background("#faf6ec");
  brush.noStroke();
  translate(-width/2, -height/2);

  // stem
  brush.fillBleed(0.08);
  brush.fillTexture(0.3, 0.4);
  brush.fill("#7b8f4e", 210);
  blob(312, 470, 7, 125, 4);
  brush.fill("#93a85c", 180);
  blob(380, 500, 78, 16, -28);

  // petals
  brush.fillTexture(0.5, 0.4);
  brush.fillBleed(0.3);
  brush.fill("#ef6a4a", 170);
  blob(230, 230, 100, 76, 35);
  blob(380, 236, 104, 78, -30);
  brush.fill("#e2472f", 185);
  blob(300, 190, 92, 96, 0);
  brush.fill("#d93a2c", 180);
  blob(304, 300, 108, 74, 8);

  // heart
  brush.fillBleed(0.15);
  brush.fill("#3a2030", 225);
  blob(302, 248, 30, 26, 10);
  brush.fill("#93a85c", 230);
  brush.circle(302, 246, 11);
  brush.fill("#2a1622", 210);
  brush.circle(330, 262, 6);
  noLoop();
}
