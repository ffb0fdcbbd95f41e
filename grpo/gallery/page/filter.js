// Which paintings a wall shows and in which order, and the bar in which that is chosen. The choice stands in the address.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h } = gallery;

  // Parameter -> what it is by itself; only others stand in the address.
  const DEFAULTS = { sort: "step", down: "1", outcome: "all", run: "all", subject: "all", count: "24" };
  gallery.defaults = DEFAULTS;

  const value = (painting, sort) => {
    if (sort in painting) return painting[sort];
    return painting.terms[sort];
  };
  const before = (a, b) => a.step - b.step || (a.run < b.run ? -1 : a.run > b.run ? 1 : 0) || a.index - b.index;

  // The paintings of `wanted` in its order. What has no value (a reward that was not given) comes last either way.
  gallery.chosen = (wanted) => {
    const given = Object.entries(wanted).filter(([, own]) => own !== undefined);
    const { sort, down, outcome, run, subject } = { ...DEFAULTS, ...Object.fromEntries(given) };
    const cut = outcome.indexOf(":");
    const [kind, reason] = cut < 0 ? [outcome, null] : [outcome.slice(0, cut), outcome.slice(cut + 1)];
    const sign = down === "1" ? -1 : 1;
    const found = gallery.paintings.filter(
      (one) =>
        (kind === "all" || one.outcome === kind) &&
        (reason === null || one.reason === reason) &&
        (run === "all" || one.run === run) &&
        (subject === "all" || one.subject === subject),
    );
    return found.sort((a, b) => {
      if (sort === "step") return sign * (a.step - b.step) || before(a, b);
      const [x, y] = [value(a, sort), value(b, sort)];
      if (typeof x !== "number" || typeof y !== "number")
        return (typeof y === "number") - (typeof x === "number") || before(a, b);
      return sign * (x - y) || before(a, b);
    });
  };

  gallery.sorts = () => [
    ["step", "step"],
    ["reward", "reward"],
    ...gallery.terms.filter((term) => term !== "coverage").map((term) => [term, term]),
    ["coverage", "paint coverage"],
    ["tokens", "tokens"],
    ["shapes", "filled shapes"],
  ];

  // Outcomes that occur, each with its reasons and how often: [value, words].
  const outcomes = () => {
    const counts = new Map();
    for (const { outcome, reason } of gallery.paintings) {
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      if (reason) counts.set(`${outcome}:${reason}`, (counts.get(`${outcome}:${reason}`) ?? 0) + 1);
    }
    const order = (text) => ["scored", "rejected", "unscored"].findIndex((kind) => text.startsWith(kind));
    const names = [...counts.keys()].sort((a, b) => order(a) - order(b) || (a < b ? -1 : 1));
    const words = (name) => name.replaceAll("_", " ").replace(":", ": ");
    return [["all", "every outcome"], ...names.map((name) => [name, `${words(name)} (${counts.get(name)})`])];
  };

  const choice = (label, name, current, options, change) =>
    h(
      "label",
      null,
      h("span", null, label),
      h(
        "select",
        { name, onchange: (event) => change({ [name]: event.target.value }) },
        options.map(([own, words]) => h("option", { value: own, selected: own === current }, words)),
      ),
    );

  // The bar over a wall. change(parameters) is called with what was chosen anew.
  gallery.bar = (wanted, change, count) => {
    const now = { ...DEFAULTS, ...wanted };
    const all = (words, names) => [["all", words], ...names.map((name) => [name, name])];
    const subjects = [...new Set(gallery.paintings.map((painting) => painting.subject))];
    const words = { step: ["newest first", "oldest first"] }[now.sort] ?? ["highest first", "lowest first"];
    return h(
      "form",
      { class: "bar", onsubmit: (event) => event.preventDefault() },
      choice("Sorted by", "sort", now.sort, gallery.sorts(), change),
      h(
        "button",
        {
          type: "button",
          name: "down",
          "aria-label": "Turn the order round",
          onclick: () => change({ down: now.down === "1" ? "0" : "1" }),
        },
        now.down === "1" ? `↓ ${words[0]}` : `↑ ${words[1]}`,
      ),
      choice("Outcome", "outcome", now.outcome, outcomes(), change),
      gallery.runs.length > 1 &&
        choice(
          "Run",
          "run",
          now.run,
          all(
            "every run",
            gallery.runs.map((run) => run.id),
          ),
          change,
        ),
      subjects.length > 1 && choice("Subject", "subject", now.subject, all("every subject", subjects), change),
      h("span", { class: "count" }, gallery.plural(count, "painting")),
    );
  };
})();
