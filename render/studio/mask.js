// The patch "mask": p5.brush draws the mask of a filled shape into a 2D canvas that is no canvas but mask.ts.
//
// p5.brush 2.2.2 makes two offscreen 2D canvases: the mask, and one into which it copies the mask's dirty rectangle for the
// upload. It calls no more of the 2D context than is written here. The mask keeps alpha alone (the shader reads no more),
// and the upload takes its bytes without a canvas in between. A 2D canvas reads the alpha of "rgb(.. / x)" in 255ths and
// that of "rgb(.. / x%)" as it is; so does this one.
"use strict";
(() => {
  if (!studio.settings.patches.includes("mask")) return;
  const STYLE = /^rgb\(255 0 0 \/ ([-+.\de]+)(%?)\)$/;
  // A 2D canvas draws a circle as a polygon inside it, which is smaller by about this share.
  const ROUND = 0.997;
  const module = new WebAssembly.Module(Uint8Array.from(atob(studio.maskModule), (c) => c.charCodeAt(0)));
  const contexts = new WeakMap(); // canvas -> Mask
  const alphas = new Map();

  const alphaOf = (style) => {
    let alpha = alphas.get(style);
    if (alpha === undefined) {
      const [, number, percent] = STYLE.exec(style) ?? [];
      if (number === undefined) throw new Error(`the mask does not know the colour ${style}`);
      alpha = Math.min(1, Math.max(0, percent ? number / 100 : Math.round(number * 255) / 255));
      if (alphas.size > 1000) alphas.clear();
      alphas.set(style, alpha);
    }
    return alpha;
  };

  class Mask {
    constructor({ width, height }) {
      this.size = [width, height];
      this.core = null; // made when the first path begins: the canvas for uploads has none
      this.room = 4096; // points
      this.saved = [];
      [this.a, this.b, this.c, this.d, this.e, this.f] = [1, 0, 0, 1, 0, 0];
      this.fillStyle = "";
      this.strokeStyle = "";
      this.lineWidth = 1;
      this.lineCap = "butt"; // closed paths have no caps
      this.globalCompositeOperation = "source-over";
      this.imageSmoothingEnabled = true; // the mask is copied pixel by pixel
      this.count = 0; // floats of the path
      this.circle = null;
      this.filled = 0; // alpha of a polygon that is gathered and not painted yet
      this.erasing = 0; // alpha of the discs that are gathered and not erased yet
      this.copied = null; // [Mask, x, y, width, height]
    }

    save() {
      const { a, b, c, d, e, f, fillStyle, strokeStyle, lineWidth, lineCap, globalCompositeOperation } = this;
      this.saved.push({ a, b, c, d, e, f, fillStyle, strokeStyle, lineWidth, lineCap, globalCompositeOperation });
    }
    restore() {
      Object.assign(this, this.saved.pop());
    }
    setTransform(a, b, c, d, e, f) {
      Object.assign(this, { a, b, c, d, e, f });
    }
    getTransform() {
      const { a, b, c, d, e, f } = this;
      return { a, b, c, d, e, f };
    }

    beginPath() {
      if (this.core === null) {
        this.core = new WebAssembly.Instance(module).exports;
        this.core.start(...this.size);
        this.view();
      }
      if (this.filled > 0) this.paint(0);
      this.count = 0;
      this.circle = null;
    }
    view() {
      this.points = new Float32Array(this.core.memory.buffer, this.core.pointsAt(), 2 * this.room);
    }
    moveTo(x, y) {
      this.count = 0; // before arc(): the point where the circle begins
      this.lineTo(x, y);
    }
    lineTo(x, y) {
      const at = this.count;
      if (at === 2 * this.room) {
        this.room *= 2;
        this.core.reserve(this.room);
        this.view();
      }
      this.points[at] = this.a * x + this.c * y + this.e;
      this.points[at + 1] = this.b * x + this.d * y + this.f;
      this.count = at + 2;
    }
    closePath() {}
    arc(x, y, radius) {
      this.circle = [x, y, radius * ROUND];
    }

    fill() {
      const alpha = alphaOf(this.fillStyle);
      const erases = this.globalCompositeOperation === "destination-out";
      if (erases !== (this.circle !== null)) throw new Error("the mask erases circles and paints polygons");
      if (!erases) {
        this.core.fill(this.count >> 1);
        this.filled = alpha;
        return;
      }
      if (this.erasing !== alpha) this.erase();
      this.erasing = alpha;
      const { a, b, c, d, e, f } = this;
      const [x, y, radius] = this.circle;
      this.core.disc(a * x + c * y + e, b * x + d * y + f, radius, a, b, c, d);
    }
    stroke() {
      this.core.outline(this.count >> 1, this.lineWidth / 2, this.a, this.b, this.c, this.d);
      this.paint(alphaOf(this.strokeStyle));
    }
    paint(outlineAlpha) {
      this.erase();
      this.core.paint(this.filled, outlineAlpha);
      this.filled = 0;
    }
    erase() {
      if (this.erasing > 0) this.core.erase(this.erasing);
      this.erasing = 0;
    }
    // Always of the whole canvas.
    clearRect() {
      if (this.core === null) return;
      if (this.filled > 0) this.paint(0);
      this.erase();
      this.core.clear();
    }

    drawImage(canvas, x, y, width, height) {
      this.copied = [contexts.get(canvas), x, y, width, height];
    }
    // RGBA bytes of a rectangle, good until the next call.
    read(x, y, width, height) {
      if (this.core === null) return new Uint8Array(4 * width * height);
      if (this.filled > 0) this.paint(0);
      this.erase();
      this.core.read(x, y, width, height);
      return new Uint8Array(this.core.memory.buffer, this.core.bytesAt(), 4 * width * height);
    }
  }

  const getContext = OffscreenCanvas.prototype.getContext;
  OffscreenCanvas.prototype.getContext = function (kind, attributes) {
    if (kind !== "2d") return getContext.call(this, kind, attributes);
    if (!contexts.has(this)) contexts.set(this, new Mask(this));
    return contexts.get(this);
  };
  const upload = WebGL2RenderingContext.prototype.texSubImage2D;
  WebGL2RenderingContext.prototype.texSubImage2D = function (...values) {
    const copied = values.length === 7 && contexts.get(values[6])?.copied;
    if (!copied) return upload.apply(this, values);
    const [target, level, x, y, format, type] = values;
    const [mask, left, top, width, height] = copied;
    return upload.call(this, target, level, x, y, width, height, format, type, mask.read(left, top, width, height));
  };
})();
