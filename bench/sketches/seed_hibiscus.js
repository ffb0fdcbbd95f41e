/**
 * A hibiscus painted in passes: pale washes, half tones, a dark throat, then the column with its pollen.
 * Each pass is an entry of PASSES; the loop at the bottom is all there is to it.
 */
const PASSES = [
  { count: 5, reach: 215, spread: 37, tints: ["#fbb894", "#f8a583", "#fac3a2"], opacity: 190, bleed: 0.3, turn: 0 },
  { count: 5, reach: 165, spread: 24, tints: ["#ee7a62", "#e96858"], opacity: 150, bleed: 0.26, turn: 6 },
  { count: 5, reach: 84, spread: 20, tints: ["#b52c4c"], opacity: 205, bleed: 0.22, turn: -3 },
];
const HEART = { x: 312, y: 280 };

function setup() {
  createCanvas(600, 600, WEBGL);
  brush.scaleBrushes(2.5);
  angleMode(DEGREES);
  noLoop();
}

/** One petal of a pass, from the heart outwards. */
function petal({ reach, spread, tints, opacity, bleed, turn }, index) {
  const dir = index * 72 - 90 + turn;
  brush.fill(tints[index % tints.length], opacity);
  brush.fillBleed(bleed, "out", 180 - dir);
  brush.beginShape(0);
  brush.vertex(HEART.x, HEART.y);
  for (let i = 0; i <= 12; i++) {
    const e = i / 6 - 1;
    const radius = reach * (1 - 0.32 * pow(abs(e), 2.6)) * (1 + 0.05 * sin(dir * 3 + i * 70));
    brush.vertex(HEART.x + radius * cos(dir + e * spread), HEART.y + radius * sin(dir + e * spread));
  }
  brush.endShape(true);
}

function draw() {
  translate(-width / 2, -height / 2);
  background(252, 249, 241);
  brush.noStroke();
  brush.fillTexture(0.4, 0.3);

  brush.fill("#86a36a", 185);
  brush.fillBleed(0.2);
  for (const side of [-1, 1]) {
    brush.beginShape(0.4);
    [[0, 0], [70, -20], [150, 10], [190, 62], [110, 74], [36, 50]].forEach(([x, y]) => brush.vertex(312 + side * (40 + x), 440 + y));
    brush.endShape(true);
  }

  for (const pass of PASSES) for (let i = 0; i < pass.count; i++) petal(pass, i);

  brush.fillTexture(0.1, 0.4, false);
  brush.fillBleed(0.05);
  brush.fill("#f7dd9c", 240);
  brush.beginShape(0.5);
  for (const [x, y] of [[308, 286], [268, 240], [222, 180], [230, 175], [278, 232], [320, 278]]) brush.vertex(x, y);
  brush.endShape(true);
  brush.fill("#f0b63a", 245);
  for (let i = 0; i < 5; i++) brush.circle(252 - i * 8 + 8 * cos(i * 140), 214 - i * 10 + 8 * sin(i * 140), 5.5);
}
