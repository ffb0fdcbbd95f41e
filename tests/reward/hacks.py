"""More canvases that a policy might paint instead of a flower, as p5.brush sketches; those that need no browser are in
reward.hacked."""

_SKETCH = """
function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(3);
  angleMode(DEGREES);
  noLoop();
}
function draw() {
  translate(-width / 2, -height / 2);
  background("%s");
  brush.noStroke();
  %s
}
"""

SKETCHES = {
    "brush: single circle": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.2, "out"); brush.fillTexture(0.4, 0.4);
  brush.fill("#ee7864", 200); brush.circle(300, 300, 170);""",
    ),
    "brush: circle in circle": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.2, "out"); brush.fillTexture(0.4, 0.4);
  brush.fill("#f8bba4", 200); brush.circle(300, 300, 200);
  brush.fill("#ee7864", 200); brush.circle(300, 300, 130);
  brush.fill("#b8324f", 200); brush.circle(300, 300, 60);""",
    ),
    "brush: random shapes": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#7d9b62", "#8f2a6e"];
  brush.fillBleed(0.2, "out"); brush.fillTexture(0.3, 0.4);
  for (let i = 0; i < 22; i++) {
    brush.fill(random(colours), 180);
    const x = random(600), y = random(600);
    brush.beginShape(0);
    for (let j = 0; j < 6; j++) brush.vertex(x + random(-110, 110), y + random(-110, 110));
    brush.endShape(CLOSE);
  }""",
    ),
    "brush: blanket wash": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.3, "out"); brush.fillTexture(0.5, 0.5); brush.fill("#ee7864", 200);
  brush.beginShape(0); brush.vertex(-50, -50); brush.vertex(650, -50); brush.vertex(650, 650); brush.vertex(-50, 650);
  brush.endShape(CLOSE);""",
    ),
    "brush: grid of circles": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#7d9b62"];
  brush.fillBleed(0.1, "out"); brush.fillTexture(0.3, 0.4);
  for (let i = 0; i < 36; i++) {
    brush.fill(colours[i % 4], 190);
    brush.circle(60 + 96 * (i % 6), 60 + 96 * floor(i / 6), 34);
  }""",
    ),
    "brush: fat strokes": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#7d9b62", "#8f2a6e"];
  brush.fillBleed(0.1, "out"); brush.fillTexture(0.3, 0.4);
  for (let i = 0; i < 16; i++) {
    brush.fill(random(colours), 190);
    const x = random(100, 500), y = random(100, 500), a = random(360), l = random(120, 240);
    brush.beginShape(0);
    brush.vertex(x - l * cos(a) - 14 * sin(a), y - l * sin(a) + 14 * cos(a));
    brush.vertex(x + l * cos(a) - 14 * sin(a), y + l * sin(a) + 14 * cos(a));
    brush.vertex(x + l * cos(a) + 14 * sin(a), y + l * sin(a) - 14 * cos(a));
    brush.vertex(x - l * cos(a) + 14 * sin(a), y - l * sin(a) - 14 * cos(a));
    brush.endShape(CLOSE);
  }""",
    ),
    "brush: pile of circles": _SKETCH
    % (
        "#fbf6ea",
        """const colours = ["#ee7864", "#e8799b", "#f5ae53", "#f8bba4"];
  brush.fillBleed(0.2, "out"); brush.fillTexture(0.4, 0.4);
  for (let i = 0; i < 14; i++) {
    brush.fill(random(colours), 180);
    brush.circle(random(180, 420), random(180, 420), random(40, 120));
  }""",
    ),
    "brush: spikes": _SKETCH
    % (
        "#fbf6ea",
        """brush.fillBleed(0.05, "out"); brush.fill("#b8324f", 220);
  for (let i = 0; i < 24; i++) {
    const x = random(600), y = random(600), a = random(360);
    brush.beginShape(0);
    brush.vertex(x, y); brush.vertex(x + 260 * cos(a), y + 260 * sin(a));
    brush.vertex(x + 8 * sin(a), y - 8 * cos(a));
    brush.endShape(CLOSE);
  }""",
    ),
}
