// The life of one painting: load the sketch, run p5's life cycle once, hand the pixels and the counts over.
//
// studio.paint(report) calls report(result) once. p5 runs in instance mode, so that none of its names is on window.
// A painting is final after the first frame: p5.brush flushes in its own postsetup and postdraw hooks; the addon below
// is registered after it, and hooks run in the order of registration.
"use strict";
(() => {
  const P5 = window.p5;
  const brush = window.brush;
  let instance = null;
  let report = null;
  let hooks = {};
  let ran = false;

  const text = (error) => {
    try {
      return error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${String(error)}`;
    } catch {
      return "thrown: an object that cannot be shown";
    }
  };
  const fail = (error) => {
    if (studio.errors.length < 20) {
      studio.errors.push({ message: text(error).slice(0, 300), line: studio.lineOf(error), name: String(error?.name) });
    }
  };

  const tick = () => new Promise((resolve) => studio.setTimeout(resolve, 0));

  // That the GPU process has died reaches the page as a task, after the sketch's own: hence the turns of the event loop
  // around the readback. Without them a lost context would be read as blank paper.
  const readCanvas = async (canvas, wanted) => {
    const gl = instance.drawingContext;
    gl.getError(); // waits for the GPU process
    await tick();
    const png = wanted ? studio.toDataURL.call(canvas, "image/png") : null;
    const error = gl.getError();
    await tick();
    return { png, context_lost: gl.isContextLost() || error === gl.CONTEXT_LOST_WEBGL };
  };

  const finish = async (extra = {}) => {
    if (studio.done) return;
    studio.done = true;
    await tick(); // a page that is busy for ever with promises must not answer: its next sketch would be blamed
    const { refusal, errors, washes, strokes, shapes, vertices, circles, applied, warnings, context_lost, canvas } = studio;
    const result = { refusal, errors, washes, strokes, shapes, vertices, circles, applied, warnings, context_lost, ...extra };
    result.webgl = Boolean(canvas);
    if (canvas) {
      result.width = canvas.width;
      result.height = canvas.height;
      Object.assign(result, await readCanvas(canvas, !refusal && washes + strokes > 0));
    }
    report(result);
  };

  window.addEventListener("error", (event) => {
    if (!ran && event.error instanceof SyntaxError && event.filename.endsWith("/sketch.js")) {
      finish({ syntax: { message: event.error.message, line: event.lineno } });
    } else {
      fail(event.error);
    }
  });
  window.addEventListener("unhandledrejection", (event) => fail(event.reason));
  window.addEventListener("securitypolicyviolation", (event) => {
    if (!ran) return;
    const detail = `${event.effectiveDirective} ${event.blockedURI} reaches outside the studio`;
    studio.refusal ??= { reason: "outside_access", detail, line: event.lineNumber || null };
  });

  const watchBlend = (p) => {
    const { createShader, shader } = p;
    let blend = null;
    let isBrush = false;
    p.createShader = (vertex, fragment) => {
      if (!fragment.includes("u_targetIsFramebuffer")) return createShader.call(p, vertex, fragment);
      blend = createShader.call(p, ...(studio.faster?.(vertex, fragment) ?? [vertex, fragment]));
      const setUniform = blend.setUniform;
      blend.setUniform = function (name, value) {
        if (name === "u_isBrush") isBrush = value;
        return setUniform.call(this, name, value);
      };
      return blend;
    };
    p.shader = (program) => {
      const result = shader.call(p, program);
      studio.counting = program === blend;
      return result;
    };
    const rect = p.rect;
    p.rect = (...values) => {
      if (studio.counting) {
        if (isBrush) studio.strokes += 1;
        else studio.washes += 1;
        studio.counting = false;
      }
      return rect.apply(p, values);
    };
  };

  const load = (path) =>
    new Promise((resolve) => {
      const script = document.createElement("script");
      script.src = path;
      script.onload = resolve;
      script.onerror = resolve;
      document.head.append(script);
    });

  studio.run = (scoped) => {
    ran = true;
    try {
      hooks = scoped.call(studio.scope)(...studio.parameters)();
    } catch (error) {
      fail(error);
    }
  };

  P5.registerAddon((_, __, lifecycles) => {
    lifecycles.postsetup = function () {
      this.noLoop();
    };
    lifecycles.postdraw = () => finish();
  });

  const setup = async () => {
    studio.freeze();
    await load("/sketch.js");
    if (studio.errors.length === 0 && !studio.refusal) {
      if (!hooks.setup) {
        finish({ no_setup: true });
        await new Promise(() => {}); // p5 goes no further
      }
      try {
        await hooks.setup();
      } catch (error) {
        fail(error);
      }
    }
    if (studio.refusal || !studio.canvas) {
      finish();
      await new Promise(() => {}); // without a WEBGL canvas p5.brush's own hooks throw
    }
  };

  const draw = async () => {
    if (studio.errors.length > 0 || !hooks.draw) return;
    try {
      await hooks.draw();
    } catch (error) {
      fail(error);
    }
  };

  studio.paint = (callback) => {
    report = callback;
    new P5((p) => {
      instance = p;
      p.setup = setup;
      p.draw = draw;
      watchBlend(p);
      studio.seal(p, P5, brush, studio.settings.source);
    });
  };
})();
