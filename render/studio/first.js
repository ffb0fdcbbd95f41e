// What must be in place before p5 and p5.brush are evaluated: seeded chance, a still clock, and the canvas settings.
//
// Chance: Math.random is mulberry32 (32 bits of state, uniform in [0, 1)) whose state is a hash (the finaliser of
// MurmurHash3) of the low and high words of the seed. p5.brush takes its own seeds from Math.random when it is
// evaluated, p5 when it first needs them, and the sketch goes on with the same stream.
// Clock: starts at 2026-01-01T00:00:00Z for every painting and moves by one millisecond each time it is read, so that
// a sketch that waits in a loop ends, the same way every time.
"use strict";
(() => {
  const element = document.getElementById("studio-settings");
  const settings = JSON.parse(element.textContent);
  element.remove(); // an id is a name on window

  const mix = (h) => {
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return (h ^ (h >>> 16)) | 0;
  };
  let randomState = mix(mix(settings.seed | 0) + Math.floor(settings.seed / 4294967296) + 0x9e3779b9);
  Math.random = () => {
    randomState = (randomState + 0x6d2b79f5) | 0;
    let t = Math.imul(randomState ^ (randomState >>> 15), randomState | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };

  const EPOCH = 1767225600000;
  const clock = { milliseconds: 0, read: () => (clock.milliseconds += 1) };
  const RealDate = Date;
  function StillDate(...parts) {
    if (!new.target) return new RealDate(EPOCH + clock.read()).toString();
    const moment = parts.length === 0 ? [EPOCH + clock.read()] : parts;
    return Reflect.construct(RealDate, moment, new.target);
  }
  StillDate.prototype = RealDate.prototype;
  StillDate.prototype.constructor = StillDate;
  StillDate.now = () => EPOCH + clock.read();
  StillDate.parse = RealDate.parse;
  StillDate.UTC = RealDate.UTC;
  Object.defineProperty(StillDate, "name", { value: "Date" });
  window.Date = StillDate;

  const wants = (patch) => settings.patches.includes(patch);
  // A mask of 8 bits rounds the many layers of tiny alpha away and the painting turns pale; 16-bit floats keep them.
  const maskContext = OffscreenCanvas.prototype.getContext;
  OffscreenCanvas.prototype.getContext = function (kind, attributes) {
    const wanted = wants("float16") && kind === "2d" ? { ...attributes, colorType: "float16" } : attributes;
    return maskContext.call(this, kind, wanted);
  };
  // MSAA changes no pixel of a painting (only full-canvas triangles are drawn) and costs time.
  const canvasContext = HTMLCanvasElement.prototype.getContext;
  HTMLCanvasElement.prototype.getContext = function (kind, attributes) {
    const still = wants("msaa") ? { antialias: false } : {};
    const wanted = kind === "webgl2" ? { ...attributes, ...still, preserveDrawingBuffer: true } : attributes;
    const context = canvasContext.call(this, kind, wanted);
    if (context === null && kind === "webgl2") studio.context_lost = true; // after a few deaths of the GPU process
    return context;
  };

  // What the libraries say on the console would travel to the driver.
  for (const name of Object.keys(console)) console[name] = () => {};

  const studio = {
    settings,
    clock,
    toDataURL: HTMLCanvasElement.prototype.toDataURL,
    setTimeout: window.setTimeout.bind(window),
    refusal: null, // the first refused use: { reason, detail, line }
    errors: [], // { message, line } of everything the sketch threw
    applied: settings.patches.filter((patch) => patch !== "blend"), // "blend" joins when its shader is in place
    warnings: [],
    context_lost: false,
    washes: 0, // composites of filled shapes
    strokes: 0, // composites of brush strokes
    shapes: 0,
    vertices: 0,
    circles: 0,
  };
  Object.defineProperty(window, "studio", { value: studio });
})();
