// For tests: every 2D canvas of p5.brush is drawn twice, by the patch "mask" and by a real canvas, and each copy of a mask's
// dirty rectangle is compared. studio.masks: [pixels painted by either, sum of differences, of absolute ones, largest].
"use strict";
(() => {
  const quickContext = OffscreenCanvas.prototype.getContext;
  studio.masks = [];
  OffscreenCanvas.prototype.getContext = function (kind, attributes) {
    const quick = quickContext.call(this, kind, attributes);
    if (kind !== "2d") return quick;
    const real = window.realContext.call(new OffscreenCanvas(this.width, this.height), "2d", window.realAttributes);
    const compare = (source, x, y, width, height) => {
      const ours = source.drawingContext.quick.read(x, y, width, height);
      const theirs = source.drawingContext.real.getImageData(x, y, width, height).data;
      let [painted, sum, absolute, largest] = [0, 0, 0, 0];
      for (let i = 3; i < ours.length; i += 4) {
        const apart = ours[i] - theirs[i];
        if (ours[i] || theirs[i]) painted += 1;
        sum += apart;
        absolute += Math.abs(apart);
        largest = Math.max(largest, Math.abs(apart));
      }
      studio.masks.push([painted, sum, absolute, largest]);
    };
    return new Proxy(quick, {
      get: (_, name) => {
        if (name === "quick") return quick;
        if (name === "real") return real;
        if (typeof quick[name] !== "function") return quick[name];
        return (...values) => {
          if (name === "drawImage") compare(...values);
          else if (typeof real[name] === "function") real[name](...values);
          return quick[name](...values);
        };
      },
      set: (_, name, value) => {
        quick[name] = value;
        real[name] = value;
        return true;
      },
    });
  };
})();
