// The sealed scope: every name and every object that a sketch can reach.
//
// The sketch is strict code inside `with (studio.scope) ...`. Allowed names are parameters of the function around it;
// any other name that the sketch does not declare meets the proxy below: refused names raise an error that becomes the
// rejection's reason, undeclared globals of the sketch are kept apart from the page, and a name that exists nowhere
// stays an ordinary ReferenceError. Lists of names stand in api.json. JavaScript's own prototypes are frozen, so that a
// sketch cannot put its code in the libraries' way.
"use strict";
(() => {
  const { settings, clock } = studio;
  const { api } = settings;
  const SAYS = {
    outside_access: "reaches outside the studio",
    text: "writes text on the canvas",
    images: "loads, draws or filters images or reads pixels",
    buffers: "makes a buffer or a shader or takes a raw context",
    primitives: "draws with p5 itself; shapes are drawn with brush",
  };

  studio.lineOf = (error) => {
    let stack = "";
    try {
      stack = String(error.stack);
    } catch {
      return null; // a sketch may throw an object whose stack throws in turn
    }
    const found = /sketch\.js:(\d+)/.exec(stack);
    return found ? Number(found[1]) : null;
  };

  const refuse = (reason, detail) => {
    const error = new Error(detail);
    error.name = "Refused";
    studio.refusal ??= { reason, detail, line: studio.lineOf(error) };
    throw error;
  };
  studio.refuse = refuse;

  const constant = (value) => () => value;
  const named = (name, call) => Object.freeze(Object.defineProperty(call, "name", { value: name }));

  // ---- p5 -----------------------------------------------------------------------------------------------------
  // They draw nothing here (brush composites full-canvas triangles), so calling them is harmless: they do nothing.
  const SILENT = [
    "print", "describe", "describeElement", "textOutput", "gridOutput", "cursor", "noCursor", "fullscreen", "redraw",
    "setAttributes", "smooth", "noSmooth", "camera", "ortho", "perspective", "frustum", "noDebugMode", "lights", "noLights",
    "ambientLight", "directionalLight", "pointLight", "spotLight", "lightFalloff", "specularColor", "ambientMaterial",
    "emissiveMaterial", "specularMaterial", "normalMaterial", "metalness", "shininess", "setFrameRate",
    "setMoveThreshold", "setShakeThreshold", "strokeMode",
  ];
  const checkSize = (width, height) => {
    for (const side of [width, height]) {
      if (!(side >= 1 && side <= settings.max_side)) {
        refuse("canvas_size", `a canvas of ${width} x ${height}: sides are 1 to ${settings.max_side} pixels`);
      }
    }
  };

  // Stands in for the canvas that createCanvas returns: what pages do with it (a parent, an id, a style) does nothing.
  const canvasStandIn = new Proxy(Object.freeze({}), {
    get: (_, name) => {
      if (typeof name === "symbol" || name === "then" || name === "toJSON") return undefined;
      if (["parent", "id", "class", "style", "position", "center", "show", "hide", "attribute", "size"].includes(name)) {
        return () => canvasStandIn;
      }
      return refuse("buffers", `the canvas's ${name} ${SAYS.buffers}`);
    },
  });

  const p5Overrides = (p) => {
    let looping = true;
    const own = {
      createCanvas: (width, height, renderer) => {
        if (renderer !== "webgl" && renderer !== "webgl2") refuse("not_webgl", "createCanvas without WEBGL");
        checkSize(width, height);
        p.createCanvas(width, height, p.WEBGL);
        studio.canvas = p.canvas;
        return canvasStandIn;
      },
      resizeCanvas: (width, height) => {
        checkSize(width, height);
        p.resizeCanvas(width, height, true);
      },
      pixelDensity: constant(1),
      displayDensity: constant(1),
      frameRate: constant(60),
      getTargetFrameRate: constant(60),
      getFrameRate: constant(60),
      keyIsDown: constant(false),
      noLoop: () => {
        looping = false;
      },
      loop: () => {
        looping = true;
      },
      isLooping: () => looping,
      millis: () => clock.read(),
    };
    const parts = { year: "FullYear", day: "Date", hour: "Hours", minute: "Minutes", second: "Seconds" };
    for (const [name, part] of Object.entries(parts)) own[name] = () => new Date()[`get${part}`]();
    own.month = () => new Date().getMonth() + 1;
    for (const name of SILENT) own[name] = constant(undefined);
    return own;
  };

  const p5Functions = (p, P5) => {
    // p5's setters return the instance, the renderer or a camera, which lead to the canvas: only values come through.
    const isValue = (result) =>
      result === null ||
      (typeof result !== "object" && typeof result !== "function") ||
      result === canvasStandIn ||
      result instanceof P5.Color ||
      result instanceof P5.Vector ||
      Array.isArray(result);
    const own = p5Overrides(p);
    const functions = {};
    for (const name of api.p5.functions) {
      const call = own[name] ?? (typeof p[name] === "function" ? p[name].bind(p) : undefined);
      if (!call) continue;
      functions[name] = named(name, (...values) => {
        const result = call(...values);
        return isValue(result) || name === "random" ? result : undefined; // random(array) gives what the sketch put in
      });
    }
    return functions;
  };

  const p5StandIn = (P5) => {
    const visible = { Vector: P5.Vector, Color: P5.Color, VERSION: P5.VERSION, disableFriendlyErrors: true };
    return new Proxy(function () {}, {
      get: (_, name) => {
        if (typeof name === "symbol" || Object.hasOwn(visible, name)) return visible[name];
        return refuse("outside_access", `p5.${name} ${SAYS.outside_access}`);
      },
      set: (_, name) => name === "disableFriendlyErrors" || refuse("outside_access", `setting p5.${String(name)}`),
      defineProperty: () => false,
      setPrototypeOf: () => false,
      has: (_, name) => Object.hasOwn(visible, name),
      ownKeys: () => ["prototype"],
      apply: () => refuse("outside_access", "p5() starts a second sketch"),
      construct: () => refuse("outside_access", "new p5() starts a second sketch"),
    });
  };

  // ---- brush --------------------------------------------------------------------------------------------------
  const distance = (a, b) => {
    let row = Array.from({ length: b.length + 1 }, (_, j) => j);
    for (let i = 1; i <= a.length; i++) {
      const next = [i];
      for (let j = 1; j <= b.length; j++) {
        next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      }
      row = next;
    }
    return row[b.length];
  };

  const sealedBrush = (brush) => {
    const everything = settings.methods === "all";
    const names = everything ? Object.keys(brush) : settings.methods;
    let vertices = 0;
    const methods = Object.create(null);
    for (const name of names) {
      if (typeof brush[name] !== "function" || /^[A-Z]/.test(name)) {
        methods[name] = brush[name];
        continue;
      }
      methods[name] = named(name, (...values) => {
        const washes = studio.washes;
        if (name === "beginShape") vertices = 0;
        const result = brush[name](...values);
        if (name === "vertex") vertices += 1;
        if (studio.washes > washes && (name !== "endShape" || vertices >= 3)) {
          studio.shapes += 1;
          if (name === "circle") studio.circles += 1;
          if (name === "endShape") studio.vertices += vertices;
        }
        return everything ? result : undefined; // plots and polygons have drawing methods of their own
      });
    }
    Object.freeze(methods);
    return new Proxy(methods, {
      get: (_, name) => {
        if (typeof name === "symbol" || name in methods) return methods[name];
        if (["then", "toJSON", "constructor", "toString", "valueOf"].includes(name)) return undefined;
        const nearest = names.reduce((a, b) => (distance(name, b) < distance(name, a) ? b : a));
        const exists = typeof brush[name] === "function" ? "is not allowed here" : "does not exist";
        return refuse("unknown_method", `brush.${name} ${exists}; the nearest allowed method is brush.${nearest}`);
      },
    });
  };

  // ---- JavaScript ---------------------------------------------------------------------------------------------
  const builderOf = (text) => {
    const kind = text.constructor.name;
    const standIn = function () {
      refuse("outside_access", `${kind} builds code from text, which ${SAYS.outside_access}`);
    };
    standIn.prototype = Object.getPrototypeOf(text);
    Object.defineProperty(standIn.prototype, "constructor", { value: standIn });
    return named(kind, standIn);
  };

  // Assigning a name that a frozen prototype holds would fail on every object below it. As an accessor whose setter
  // defines the property on the object itself, `error.name = ...` and `Petal.prototype.constructor = ...` still work.
  const allowOverrides = (prototype) => {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
      if (!("value" in property) || !property.configurable) continue;
      const { value, enumerable } = property;
      Object.defineProperty(prototype, name, {
        get: () => value,
        set(own) {
          if (this === prototype) throw new TypeError(`${name} of a built-in prototype cannot be replaced`);
          Object.defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
        },
        enumerable,
        configurable: false,
      });
    }
  };

  const freezeAll = (roots) => {
    const seen = new Set();
    const queue = [...roots];
    while (queue.length > 0) {
      const value = queue.pop();
      if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
      if (value === window || value instanceof Node) throw new Error("the page is reachable from a built-in object");
      seen.add(value);
      if (!ArrayBuffer.isView(value)) Object.freeze(value);
      queue.push(Object.getPrototypeOf(value));
      for (const property of Object.values(Object.getOwnPropertyDescriptors(value))) {
        queue.push(property.value, property.get, property.set);
      }
    }
  };

  const timers = () => {
    const queue = [];
    let sequence = 0;
    let pumping = false;
    const step = () => {
      pumping = false;
      if (studio.done || queue.length === 0) return;
      queue.sort((a, b) => a.due - b.due || a.id - b.id);
      const task = queue[0];
      clock.milliseconds = Math.max(clock.milliseconds, task.due);
      if (task.period === undefined) queue.shift();
      else task.due += task.period;
      pump();
      task.callback(...task.values); // what it throws meets the page's error event
    };
    const pump = () => {
      if (pumping || studio.done || queue.length === 0) return;
      pumping = true;
      studio.setTimeout(step, 0);
    };
    const add = (callback, delay, values, repeats) => {
      if (typeof callback !== "function") throw new TypeError("a timer takes a function");
      const wait = Math.max(1, Number(delay) || 0);
      sequence += 1;
      queue.push({ id: sequence, callback, values, due: clock.milliseconds + wait, period: repeats ? wait : undefined });
      pump();
      return sequence;
    };
    const drop = (id) => {
      const index = queue.findIndex((task) => task.id === id);
      if (index >= 0) queue.splice(index, 1);
    };
    return {
      setTimeout: (callback, delay, ...values) => add(callback, delay, values, false),
      setInterval: (callback, delay, ...values) => add(callback, delay, values, true),
      requestAnimationFrame: (callback) => add(() => callback(clock.read()), 16, [], false),
      clearTimeout: (id) => drop(id),
      clearInterval: (id) => drop(id),
      cancelAnimationFrame: (id) => drop(id),
    };
  };

  const builtIns = () => {
    const builders = [function () {}, async function () {}, function* () {}, async function* () {}].map(builderOf);
    const values = {};
    for (const name of api.javascript) values[name] = window[name];
    const own = timers();
    for (const name of Object.keys(own)) values[name] = named(name, own[name]);
    values.Function = builders[0];
    values.queueMicrotask = named("queueMicrotask", (callback) => queueMicrotask(callback));
    values.structuredClone = named("structuredClone", (value) => structuredClone(value));
    values.performance = Object.freeze({ now: () => clock.read() });
    const silent = ["log", "info", "warn", "error", "debug", "table", "time", "timeEnd", "trace", "group", "groupEnd",
      "assert", "count", "clear", "dir", "groupCollapsed"];
    values.console = Object.freeze(Object.fromEntries(silent.map((name) => [name, () => {}])));
    Error.stackTraceLimit = 50;
    Object.defineProperty(Error, "prepareStackTrace", { value: undefined }); // its frames hand out `this` of callers
    return values;
  };

  // ---- the scope ----------------------------------------------------------------------------------------------
  // Names that the source assigns to may be undeclared globals, which strict code would not allow: they are kept here.
  const assignedNames = (source) => {
    const names = new Set();
    const assignment = /([A-Za-z_$][\w$]*)\s*(?:(?:[-+*/%&|^]|\*\*|<<|>>>?|&&|\|\||\?\?)?=(?![=>])|\+\+|--)|(?:\+\+|--)([A-Za-z_$][\w$]*)|for\s*\(\s*([A-Za-z_$][\w$]*)\s+(?:of|in)\b/g;
    for (const match of source.matchAll(assignment)) names.add(match[1] ?? match[2] ?? match[3]);
    return names;
  };

  // p5 writes on its own classes in its presetup hook, so this waits until the sketch is about to run.
  const freezeEverything = (values, P5) => {
    for (const owner of [P5.Vector, P5.Color]) {
      Object.freeze(owner);
      Object.freeze(owner.prototype);
    }
    const iterators = [[][Symbol.iterator](), new Map().entries(), new Set().values(), ""[Symbol.iterator](), "".matchAll(/a/g)];
    const hidden = [async () => {}, function* () {}, (function* () {})(), async function* () {}, (async function* () {})(), ...iterators];
    for (const owner of [Object, Error, TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError, AggregateError]) {
      allowOverrides(owner.prototype);
    }
    const roots = api.javascript.map((name) => values[name]);
    freezeAll([...roots, ...hidden.map(Object.getPrototypeOf)]);
    for (const value of Object.values(values)) if (typeof value === "function" && value !== values.p5) Object.freeze(value);
  };

  studio.seal = (p, P5, brush, source) => {
    const values = { ...builtIns(), ...p5Functions(p, P5), brush: sealedBrush(brush), p5: p5StandIn(P5) };
    for (const name of api.p5.constants) values[name] = p[name];
    const fixed = { windowWidth: 600, windowHeight: 600, displayWidth: 600, displayHeight: 600, deltaTime: 1000 / 60,
      focused: true, mouseIsPressed: false, keyIsPressed: false, mouseButton: "", key: "", keyCode: 0, touches: Object.freeze([]),
      webglVersion: "webgl2", deviceOrientation: "landscape" };
    const live = {};
    for (const name of api.p5.variables) live[name] = constant(fixed[name] ?? 0);
    for (const name of ["width", "height", "frameCount"]) live[name] = () => p[name];

    const refused = new Map();
    for (const [group, names] of Object.entries(api.refused)) for (const name of names) refused.set(name, group);
    const assigned = assignedNames(source);
    const globals = new Map([["setup", undefined], ["draw", undefined]]);
    const literals = new Set(["undefined", "NaN", "Infinity"]);

    studio.parameters = settings.parameters.map((name) => values[name]);
    studio.scope = new Proxy(Object.create(null), {
      has: (_, name) =>
        typeof name === "string" &&
        !literals.has(name) &&
        (globals.has(name) || Object.hasOwn(live, name) || refused.has(name) || assigned.has(name) || name in window),
      get: (_, name) => {
        if (typeof name === "symbol") return undefined;
        if (globals.has(name)) return globals.get(name);
        if (Object.hasOwn(live, name)) return live[name]();
        if (!refused.has(name) && !(name in window)) throw new ReferenceError(`${name} is not defined`);
        const group = refused.get(name) ?? "outside_access";
        return refuse(group, `${name} ${SAYS[group]}`);
      },
      set: (_, name, value) => {
        globals.set(name, value);
        return true;
      },
    });

    studio.freeze = () => freezeEverything(values, P5);
  };
})();
