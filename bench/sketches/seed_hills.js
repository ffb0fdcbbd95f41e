/* Evening hills. Wide washes laid over one another from the sky down:
   six of sky, nine of hills, five of water and reeds, a sun. 21 shapes. */
let W = 600;
let H = 600;

function setup() {
    createCanvas(W, H, WEBGL);
    noLoop();
}

// a band of colour from one side of the paper to the other
function band(y, thick, wave, r, g, b, alpha, phase) {
    brush.fill(r, g, b, alpha);
    brush.beginShape(0.4);
    for (let x = 20; x <= 580; x += 56) {
        brush.vertex(x, y + wave * sin(x * 0.012 + phase) + 0.4 * wave * sin(x * 0.031 + phase * 2));
    }
    for (let x = 580; x >= 20; x -= 112) {
        brush.vertex(x, y + thick + 0.3 * wave * sin(x * 0.02 + phase));
    }
    brush.endShape(true);
}

function draw() {
    translate(-W / 2, -H / 2);
    background(252, 248, 240);
    brush.noStroke();

    // sky
    brush.fillTexture(0.5, 0.1);
    brush.fillBleed(0.35);
    let sky = [[244, 196, 150], [246, 178, 140], [238, 160, 142], [214, 150, 160], [178, 150, 182], [150, 150, 190]];
    for (let i = 0; i < sky.length; i++) {
        band(210 - i * 36, 52, 10, sky[i][0], sky[i][1], sky[i][2], 110, i * 1.7);
    }

    // the sun, half behind the ridge
    brush.fillBleed(0.1);
    brush.fill(250, 214, 120, 200);
    brush.circle(400, 226, 42);

    // ridges, each nearer one darker
    brush.fillTexture(0.4, 0.35);
    for (let i = 0; i < 9; i++) {
        brush.fillBleed(0.12 + 0.01 * i);
        band(250 + i * 22, 60 - i * 2, 24 - i, 150 - 11 * i, 150 - 7 * i, 176 - 12 * i, 150 + 6 * i, 2 + i * 2.3);
    }

    // water
    brush.fillBleed(0.3);
    for (let i = 0; i < 5; i++) {
        band(486 + i * 18, 20, 4, 120 + 14 * i, 150 + 6 * i, 178 - 4 * i, 120, i);
    }
}
