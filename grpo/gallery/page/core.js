// What every view shares: the data, how it is loaded, and how elements are made.
//
// Data files are classic scripts that call gallery.put(kind, key, value). Words of the policy and of the judge are only
// ever set as text (never as markup): `h` below is the one place where elements are made.
"use strict";
window.gallery = {
  runs: [], // entries of data/runs.js
  paintings: [], // every rollout of every run, see unpack
  tables: new Map(), // run -> columns of the table
  details: new Map(), // "run/step" -> rollouts
  fields: new Map(), // "run/step" -> name -> picture of mean colours
  studio: {}, // texts for the live frame
  views: {}, // name -> { show(view, parameters), refresh?(), key?(event), hide?() }
};
(() => {
  const gallery = window.gallery;
  const OUTCOMES = { s: "scored", r: "rejected", u: "unscored" };
  const walls = new Map();
  const flights = new Map();
  const loading = new Map();
  const known = new Map(); // run -> version of its lists

  gallery.put = (kind, key, value) => {
    if (kind === "runs") [gallery.runs, gallery.live, gallery.version] = [value.runs, value.live, value.version];
    else if (kind === "wall") walls.set(key, value);
    else if (kind === "steps") gallery.tables.set(key, value);
    else if (kind === "flight") flights.set(key, value);
    else if (kind === "details" || kind === "fields") gallery[kind].set(key, value);
    else if (kind === "studio") gallery.studio[key] = value;
  };

  // Run one data file, once at a time. Resolves to whether it came; the version keeps the cache of a web host from
  // answering with an old one.
  gallery.load = (path, version = "") => {
    const address = version === "" ? path : `${path}?v=${version}`;
    if (!loading.has(address)) {
      const script = document.createElement("script");
      const loaded = new Promise((resolve) => {
        script.onload = () => resolve(true);
        script.onerror = () => resolve(false);
      });
      loading.set(address, loaded);
      loaded.then(() => {
        loading.delete(address);
        script.remove();
      });
      script.src = address;
      document.head.append(script);
    }
    return loading.get(address);
  };

  const unpack = (run, line, flight) =>
    line.rows.map((row) => {
      const [index, group, outcome, reward, advantage, colour, coverage, tokens, shapes, reason, terms, excerpt] = row;
      const { step } = line;
      const name = `step_${String(step).padStart(4, "0")}_${String(index).padStart(2, "0")}`;
      return {
        run,
        step,
        index,
        group,
        reward,
        advantage,
        colour,
        coverage,
        tokens,
        shapes,
        reason,
        excerpt,
        flight,
        name,
        key: `${run}/${step}/${index}`,
        outcome: OUTCOMES[outcome] ?? "unscored",
        subject: line.subjects[group] ?? "",
        terms: Object.fromEntries(line.terms.map((term, at) => [term, terms[at]])),
        thumb: colour && `thumbs/${encodeURIComponent(run)}/${name}.webp`,
        image: colour && `paintings/${encodeURIComponent(run)}/${name}.png`,
      };
    });

  // Read (or read again) the lists: which runs, their walls, tables and steps in flight.
  gallery.reload = async (version = "") => {
    if (!(await gallery.load("data/runs.js", version))) return false;
    const changed = gallery.runs.filter((run) => known.get(run.id) !== run.version);
    const files = changed.flatMap((run) =>
      ["wall", "steps", "flight"].map((name) =>
        gallery.load(`data/${encodeURIComponent(run.id)}/${name}.js`, run.version),
      ),
    );
    await Promise.all(files);
    for (const run of changed) {
      known.set(run.id, run.version);
      for (const map of [gallery.details, gallery.fields])
        for (const key of map.keys()) if (key.startsWith(`${run.id}/`)) map.delete(key);
    }
    gallery.paintings = gallery.runs.flatMap(({ id }) => {
      const whole = new Map((walls.get(id) ?? []).map((line) => [line.step, unpack(id, line, false)]));
      const flight = (flights.get(id)?.lines ?? []).filter((line) => !whole.has(line.step));
      return [...[...whole.values()].flat(), ...flight.flatMap((line) => unpack(id, line, true))];
    });
    gallery.byKey = new Map(gallery.paintings.map((painting) => [painting.key, painting]));
    const weight = (term) => Math.max(...gallery.runs.map((run) => run.weights[term] ?? 0));
    gallery.terms = [...new Set(gallery.paintings.flatMap((painting) => Object.keys(painting.terms)))].sort(
      (a, b) => weight(b) - weight(a),
    );
    return true;
  };

  gallery.run = (id) => gallery.runs.find((run) => run.id === id);
  gallery.termName = (run, term) => (run?.standIns.includes(term) ? `${term} (stand-in)` : term);

  // All that is known of one rollout, or null. Steps in flight change, so theirs come with the run's version.
  gallery.detail = async (painting) => {
    const { run, step, index } = painting;
    if (painting.flight) return flights.get(run).details.find((one) => one.step === step && one.index === index);
    await stepFile("step", "details", painting);
    return gallery.details.get(`${run}/${step}`)?.find((one) => one.index === index) ?? null;
  };
  gallery.fieldsOf = async (painting) => {
    if (painting.flight) return flights.get(painting.run).fields[painting.name];
    await stepFile("fields", "fields", painting);
    return gallery.fields.get(`${painting.run}/${painting.step}`)?.[painting.name];
  };
  const stepFile = async (name, kind, { run, step }) => {
    const file = `data/${encodeURIComponent(run)}/${name}_${String(step).padStart(4, "0")}.js`;
    if (!gallery[kind].has(`${run}/${step}`)) await gallery.load(file, gallery.run(run).version);
  };

  // ---- elements -----------------------------------------------------------------------------------------------
  const NAMES = "http://www.w3.org/2000/svg";
  const fill = (element, properties, children) => {
    for (const [name, value] of Object.entries(properties ?? {})) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
    return element;
  };
  // h("a", { href, onclick }, children...): strings become text, never markup.
  gallery.h = (tag, properties, ...children) => fill(document.createElement(tag), properties, children);
  gallery.svg = (tag, properties, ...children) => fill(document.createElementNS(NAMES, tag), properties, children);

  gallery.number = (value, digits = 3) =>
    typeof value !== "number"
      ? "–"
      : Number.isInteger(value) && digits > 0 && Math.abs(value) > 1
        ? String(value)
        : value.toFixed(digits);
  gallery.plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
  gallery.link = (painting) => `#painting/${encodeURIComponent(painting.run)}/${painting.step}/${painting.index}`;
  gallery.verdict = (painting) => {
    if (painting.outcome === "scored") return gallery.number(painting.reward);
    return painting.reason ? `${painting.outcome}: ${painting.reason.replaceAll("_", " ")}` : painting.outcome;
  };
  gallery.label = (painting) =>
    `${gallery.runs.length > 1 ? `${painting.run}, ` : ""}step ${painting.step}, painting ${painting.index}, ` +
    (painting.outcome === "scored" ? `reward ${gallery.verdict(painting)}` : gallery.verdict(painting));

  // The picture of a rollout, or its words where there is none.
  gallery.picture = (painting, address = painting.thumb, properties = {}) =>
    address
      ? gallery.h("img", {
          src: address,
          alt: gallery.label(painting),
          decoding: "sync",
          draggable: "false",
          ...properties,
        })
      : gallery.h(
          "div",
          { class: "words" },
          gallery.h("b", null, gallery.verdict(painting)),
          gallery.h("pre", null, painting.excerpt ?? ""),
        );

  gallery.say = (text) => {
    document.getElementById("status").textContent = text;
  };
})();
