"""Sketches that are hard to judge by their text. The line that a refusal must name holds the comment HERE.

HONEST        (name, source): nothing refuses them, and they paint
REFUSED       (name, source, reason): the static look refuses them, and so does the page, if by another word
LEFT_TO_PAGE  (name, source, reason): the static look cannot know; the page refuses them
"""

SETUP = "function setup() {\n  createCanvas(200, 200, WEBGL);\n  noLoop();\n}\n"
PAINT = 'brush.noStroke(); brush.fill("#c03050", 220); brush.circle(0, 0, 60);'
DRAW = f"function draw() {{\n  background(250);\n  {PAINT}\n}}\n"
GOOD = SETUP + DRAW


def draw(before: str, after: str = "") -> str:
    """A sketch whose draw runs `before`, paints one disc, and runs `after`."""
    return f"{SETUP}function draw() {{\n  {before}\n  {PAINT}\n  {after}\n}}\n"


HONEST: list[tuple[str, str]] = [
    ("plain", GOOD),
    (
        "English in comments",
        "// This text draws an image: no rect, no filter(x), no fetch(url), it's only a line (point) of an arc\n"
        "/* text('hello'); loadImage('a.png'); window.location = `x` { ( [ */\n" + GOOD,
    ),
    (
        "code in strings",
        draw("const note = \"text('a', 0, 0); image(b); } ] )\", other = 'it\\'s // no comment: rect(0,0,1,1)';"),
    ),
    (
        "code in a template",
        draw(
            "const note = `text(1) ${[1, 2].map((n) => `rect(${n}) ${'}'}`).join('}')} \\` fetch('x') ${{ a: 1 }.a}`;"
        ),
    ),
    (
        "quotes and slashes in a regular expression",
        draw(r"""const re = /["'`/[\]](\/\*|\/\/)[/'"]/g; "a".replace(re, "");"""),
    ),
    (
        "regular expression after a parenthesis",
        draw("if (true) /'/.test(\"'\"); let a = (4) / 2 / 1; let b = [8][0] / 2;"),
    ),
    (
        "division after a brace",
        draw("const o = { v: 4 }; let w = { v: 8 }.v / 2; let z = o.v / 2, q = o['v'] / 4; // '"),
    ),
    ("regular expression after a block", draw("if (width) { random(1) }\n  /`'\"/.test('x');")),
    ("regular expression after return", draw("const f = () => { return /'{[(]/.test('x') }; f();")),
    ("postfix before a division", draw("let n = 8; const h = n++ / 2 / 1; // it's ' fine")),
    (
        "keyword as a property",
        draw("const o = { return: 8, if: (x) => x }; let h = o.return / 2; h = o.if (4) / 2; // '"),
    ),
    ("numbers", draw("let n = 1_000 + .5 + 1. + 0xFFn.toString().length + 1e-3 / 2 + 1..toFixed().length;")),
    ("optional chain and ternary on a dot", draw("const o = null; const a = o?.text ?? 1; const b = a ?.5 : 1;")),
    (
        "private names",
        "class Petal { #size = 60; static text = 1; paint() { "
        + PAINT.replace("60", "this.#size")
        + " } }\n"
        + SETUP
        + "function draw() { new Petal().paint(); }",
    ),
    ("own function rect", draw("rect(60);") + f"function rect(d) {{ {PAINT} }}\n"),
    ("own function text", draw("text(60);") + "const text = (d) => d * 2;\n"),
    ("own variable filter", draw("const filter = (x) => x > 1; [1, 2].filter(filter); filter(3);")),
    (
        "own image by destructuring",
        draw("const { image, other: [line] } = { image: () => 1, other: [() => 2] }; image(); line();"),
    ),
    ("own parameter text", draw("const paint = (text, { point }) => text(point); paint((p) => p, { point: 1 });")),
    ("undeclared own name", draw("rect = (x) => x; rect(2);")),
    ("own class Image", "class Image { text() { return 1; } }\n" + draw("new Image().text();")),
    (
        "methods of one's own",
        draw("const pg = { text() { return 1; }, fill: (x) => x }; pg.text('a'); pg.fill(2); pg.image = 1;"),
    ),
    (
        "property and key names",
        draw("const o = { text: 'a', rect: 1, image: [2] }; const s = o.text + o.rect + o['image'];"),
    ),
    ("computed method", draw('brush["fill"]("#333333", 200); const m = "noStroke"; brush[m]();')),
    (
        "methods by destructuring",
        SETUP
        + "const { fill: ink, circle, noStroke } = brush;\n"
        + "function draw() { noStroke(); ink('#c03050', 220); circle(0, 0, 60); }",
    ),
    ("alias of brush", SETUP + f"function draw() {{ const b = brush; {PAINT.replace('brush.', 'b.')} }}"),
    (
        "shape in a loop",
        SETUP
        + "function draw() { brush.noStroke(); brush.fill('#3050c0', 220); brush.beginShape();\n"
        + "for (let i = 0; i < 6; i++) brush.vertex(60 * Math.cos(i), 60 * Math.sin(i)); brush.endShape(CLOSE); }",
    ),
    ("painting in setup", f"function setup() {{ createCanvas(200, 200, WEBGL); {PAINT} }}"),
    (
        "arrow functions",
        f"const setup = () => {{ createCanvas(200, 200, WEBGL); noLoop(); }};\nlet draw = () => {{ {PAINT} }};",
    ),
    ("async setup", f"async function setup() {{ createCanvas(200, 200, WEBGL); await null; {PAINT} }}"),
    (
        "assigned setup",
        f"setup = function () {{ createCanvas(200, 200, WEBGL); noLoop(); }};\ndraw = () => {{ {PAINT} }};",
    ),
    ("one line", f"function setup(){{createCanvas(200,200,WEBGL);noLoop()}}function draw(){{background(250);{PAINT}}}"),
    ("no semicolons", GOOD.replace(";", "\n")),
    ("escaped names", f"function s\\u0065tup() {{ cr\\u{{65}}ateCanvas(200, 200, \\u0057EBGL); {PAINT} }}"),
    ("renderer by a name", f"const how = 'web' + 'gl';\nfunction setup() {{ createCanvas(200, 200, how); {PAINT} }}"),
    ("renderer as a string", f"function setup() {{ createCanvas(200, 200, 'webgl'); {PAINT} }}"),
    (
        "canvas by spread",
        f"const size = [200, 200, 'web' + 'gl'];\nfunction setup() {{ createCanvas(...size); {PAINT} }}",
    ),
    (
        "refused names that never run",
        draw(
            "const label = () => text('a', 0, 0); if (width < 0) { rect(0, 0, 9, 9); } width > 0 || line(1, 2);",
            "return;\n  image(1);",
        ),
    ),
    (
        "unknown methods that never run",
        draw("if (frameCount > 9) brush.spray(1);\n  for (const x of []) brush.set(x);", "return; brush.pick('a');"),
    ),
    ("refused name behind a throw after pigment", draw("", "notDefined.x = 1;\n  text('never reached', 0, 0);")),
    (
        "unknown method after pigment behind a throw",
        f"function setup() {{ createCanvas(200, 200, WEBGL); {PAINT} throw new Error('x'); }}\n"
        + "function draw() { rect(1, 1, 1, 1); }",
    ),
    (
        "pigment by a helper, then a throw",
        f"function flower() {{ {PAINT} }}\n"
        + SETUP
        + "function draw() { flower(); undefinedName(); ellipse(0, 0, 10, 10); }",
    ),
    (
        "the mask of a vector",
        draw("const v = p5.Vector.fromAngle(1); const w = createVector(1, 2); v.set(w); v.copy();"),
    ),
    ("HTML-like comment", "<!-- it's an old (one\n" + GOOD),
    ("Windows line ends", GOOD.replace("\n", "\r\n")),
    ("comment at the very end", GOOD + "// the end of the flower's text"),
]

REFUSED: list[tuple[str, str, str]] = [
    ("cut in draw", SETUP + "function draw() { // HERE\n  brush.fill('#c03050', 220);\n  brush.circle(0,", "truncated"),
    ("cut in a string", GOOD + "const name = 'peach hib // HERE", "truncated"),
    ("cut in a template", GOOD + "const a = `petal ${1 + `x`} // HERE\n and more", "truncated"),
    ("cut in a substitution", GOOD + "const a = `petal ${ // HERE\n 1 + 2", "truncated"),
    ("cut in a comment", GOOD + "/* HERE the petals\n are", "truncated"),
    ("cut in a regular expression", GOOD + "/* HERE */ const a = /[/]abc", "truncated"),
    ("wrong bracket", SETUP + "function draw() {\n  brush.circle(0, 0, 9]; // HERE\n}", "syntax_error"),
    ("closes too much", GOOD + "} // HERE\n", "syntax_error"),
    ("string over a line end", SETUP + "const a = 'one; // HERE\nconst b = 2;\n" + DRAW, "syntax_error"),
    ("no setup", f"function draw() {{ createCanvas(200, 200, WEBGL); {PAINT} }}", "no_setup"),
    ("setup only in a comment", f"// function setup() {{}}\nfunction draw() {{ {PAINT} }}", "no_setup"),
    ("setup only in a string", f"const s = 'function setup() {{}}';\nfunction draw() {{ {PAINT} }}", "no_setup"),
    ("setup only called", f"function start() {{ createCanvas(200, 200, WEBGL); {PAINT} }}\nsetup();", "no_setup"),
    (
        "setup only as a method",
        f"class Sketch {{ setup() {{ createCanvas(200, 200, WEBGL); {PAINT} }} draw = 1 }}",
        "no_setup",
    ),
    (
        "setup only as a field",
        f"class Sketch {{ setup = () => {{ createCanvas(200, 200, WEBGL); {PAINT} }} }}",
        "no_setup",
    ),
    ("canvas without a renderer", "function setup() {\n  createCanvas(200, 200); // HERE\n}\n" + DRAW, "not_webgl"),
    ("canvas with P2D", "function setup() {\n  createCanvas(200, 200, P2D); // HERE WEBGL\n}\n" + DRAW, "not_webgl"),
    (
        "canvas of computed size",
        "function setup() {\n  createCanvas(max(200, 100), [1, 2, 200][2],); // HERE\n}\n" + DRAW,
        "not_webgl",
    ),
    ("no canvas", "function setup() { noLoop(); } // HERE\n" + DRAW, "not_webgl"),
    ("text at once", draw("background(250); text('peach', 0, 0); // HERE"), "text"),
    ("text by an escape", draw("t\\u0065xt('peach', 0, 0); // HERE"), "text"),
    ("text in setup", SETUP.replace("noLoop()", "textSize(random([12, 14])) /* HERE */") + DRAW, "text"),
    (
        "image loaded in setup",
        "let petal;\n" + SETUP.replace("noLoop()", "petal = loadImage('petal.png') /* HERE */") + DRAW,
        "images",
    ),
    ("filter in an argument", draw("translate(10, filter(3)); // HERE"), "images"),
    ("graphics buffer", draw("const pg = createGraphics(200, 200); // HERE\n  pg.text('a', 0, 0);"), "buffers"),
    ("raw context", draw("const gl = drawingContext; // HERE"), "buffers"),
    ("raw context's member", draw("drawingContext.clearColor(1, 0, 0, 1); // HERE"), "buffers"),
    (
        "rectangle first",
        draw("translate(-width / 2, -height / 2)\n  fill(200)\n  rect(0, 0, 200, 200) // HERE"),
        "primitives",
    ),
    (
        "own shapes only",
        SETUP + "function draw() {\n  background(250); ellipse(0, 0, 50, 50); // HERE\n}",
        "primitives",
    ),
    ("ellipse in a block", draw("push(); { ellipse(0, 0, 50, 50); } // HERE\n  pop();"), "primitives"),
    ("fetch at the top", "fetch('https://example.com/a.json'); // HERE\n" + GOOD, "outside_access"),
    ("the document", draw("const title = `${document.title}`; // HERE"), "outside_access"),
    ("a worker", draw("const w = new Worker('a.js'); // HERE"), "outside_access"),
    ("unknown method", draw("brush.noStroke();\n  brush.setFill('#c03050'); // HERE"), "unknown_method"),
    ("method of another day", SETUP.replace("noLoop()", "brush.load() /* HERE */") + DRAW, "unknown_method"),
    (
        "no pigment",
        SETUP + "function draw() { background(250, 230, 220); brush.fill('#c03050', 200); brush.noStroke(); }",
        "no_painting",
    ),
    (
        "brush only in words",
        SETUP + "// brush.circle(0, 0, 60)\nfunction draw() { background('peach'.length); }",
        "no_painting",
    ),
    (
        "shape without an end",
        SETUP + "function draw() { brush.beginShape(); for (const x of [1, 2, 3]) brush.vertex(x, x * x); }",
        "no_painting",
    ),
]

LEFT_TO_PAGE: list[tuple[str, str, str]] = [
    ("text in a condition", draw("if (width > 0) text('a', 0, 0);"), "text"),
    ("text after pigment", draw("", "text('a', 0, 0);"), "text"),
    ("text by an alias", draw("const write = [text][0]; write('a', 0, 0);"), "text"),
    ("rectangle in a helper", draw("ground();") + "function ground() { rect(0, 0, 200, 200); }", "primitives"),
    ("rectangle in a loop", draw("for (let i = 0; i < 2; i++) rect(0, 0, i, i);"), "primitives"),
    ("rectangle in a try", draw("try { rect(0, 0, 9, 9); } catch (error) {}"), "primitives"),
    (
        "own rect elsewhere",
        draw("rect(0, 0, 9, 9);") + "function other() { const rect = 1; return rect; }",
        "primitives",
    ),
    ("computed unknown method", draw('brush["set"]("pen", "#000000", 1);'), "unknown_method"),
    ("unknown method by destructuring", draw("const { pick } = brush; pick('pen');"), "unknown_method"),
    ("setup never bound", f"if (1) {{ function setup() {{ createCanvas(200, 200, WEBGL); {PAINT} }} }}", "no_setup"),
    (
        "renderer by a name that is no WEBGL",
        "const how = 'p' + '2d';\nfunction setup() { createCanvas(200, 200, how); }\n" + DRAW,
        "not_webgl",
    ),
    ("painting in code that never runs", SETUP + f"function draw() {{ if (width < 0) {{ {PAINT} }} }}", "no_painting"),
    ("stray character", GOOD + "const a = 1 # 2;", "syntax_error"),
]
