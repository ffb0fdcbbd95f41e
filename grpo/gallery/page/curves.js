// The curves of the runs: which numbers are drawn, and from which columns of the table.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h } = gallery;
  const all = { charts: [], mark: null };
  let current = null;

  const line = (run, index, column, name, more = {}) => {
    const table = gallery.tables.get(run.id) ?? {};
    if (!table[column]?.some((value) => typeof value === "number")) return null;
    return { name, steps: table.step, values: table[column], colour: `c${index % 6}`, ...more };
  };
  const named = (run, name) => (gallery.runs.length > 1 ? (name ? `${run.id}, ${name}` : run.id) : name || "mean");

  const charts = (runs) => {
    const one = runs.length === 1;
    const each = (column, name = "") =>
      runs.map((run) => line(run, gallery.runs.indexOf(run), column, named(run, name)));
    const found = [
      {
        title: "Reward",
        series: runs.flatMap((run) => {
          const index = gallery.runs.indexOf(run);
          return [
            line(run, index, "reward", named(run, "as paid"), { faint: true }),
            line(run, index, "reward_adjusted", named(run, "without the luck of the draw")),
            one && line(run, 1, "reward_best", "best", { faint: true }),
            one && line(run, 2, "reward_median", "median", { faint: true }),
          ];
        }),
      },
      ...gallery.terms
        .filter((term) => term !== "gate")
        .map((term) => ({ title: `Term: ${gallery.termName(runs[0], term)}`, series: each(`rewards/${term}/mean`) })),
      { title: "Paint coverage", series: each("coverage") },
      { title: "Filled shapes", series: each("shapes") },
      { title: "Entropy", series: each("entropy") },
      {
        title: "Length in tokens",
        series: [
          ...each("completions/mean_length"),
          ...(one
            ? [
                line(runs[0], 1, "completions/min_length", "shortest", { faint: true }),
                line(runs[0], 2, "completions/max_length", "longest", { faint: true }),
              ]
            : []),
        ],
      },
      ...runs.map((run) => ({
        title: one ? "Outcomes" : `Outcomes, ${run.id}`,
        stacked: true,
        series: ["scored", "rejected", "unscored"].map((outcome) =>
          line(run, 0, `rollouts/${outcome}`, outcome, { colour: outcome }),
        ),
      })),
      ...runs.map((run) => ({
        title: one ? "Where the time goes" : `Where the time goes, ${run.id}`,
        stacked: true,
        unit: " s",
        series: [
          ["time/sample", "sampling"],
          ["time/paint_waited", "waiting for paintings"],
          ["time/score", "scoring"],
          ["time/train", "training"],
        ].map(([column, name], index) => line(run, index, column, name)),
      })),
    ];
    return found
      .map((chart) => ({ ...chart, series: chart.series.filter(Boolean) }))
      .filter((chart) => chart.series.length > 0);
  };

  const about = (run) =>
    h(
      "details",
      { class: "about" },
      h(
        "summary",
        null,
        `${run.id}: ${gallery.plural(run.last > 0 ? run.last : 0, "step")}${run.steps ? ` of ${run.steps}` : ""}, settings`,
      ),
      h(
        "dl",
        null,
        run.settings.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
      ),
    );

  const show = (view, parameters) => {
    const wanted = parameters.run ?? "all";
    const runs = gallery.runs.filter((run) => wanted === "all" || run.id === wanted);
    all.charts = [];
    all.mark = (step) => {
      current = step;
      for (const mark of all.charts) mark(step);
    };
    const toStep = (step) => gallery.go("film", { step: String(step), ...(wanted === "all" ? {} : { run: wanted }) });
    const drawn = charts(runs)
      .map((chart) => gallery.chart(chart, toStep, all))
      .filter(Boolean);
    view.replaceChildren(
      (gallery.runs.length > 1 &&
        h(
          "form",
          { class: "bar" },
          h(
            "span",
            { class: "buttons" },
            ["all", ...gallery.runs.map((run) => run.id)].map((name) =>
              h(
                "button",
                {
                  type: "button",
                  "aria-pressed": String(name === wanted),
                  onclick: () => gallery.go("curves", { run: name }),
                },
                name === "all" ? "every run" : name,
              ),
            ),
          ),
        )) ||
        "",
      drawn.length > 0 ? h("div", { class: "charts" }, drawn) : h("p", { class: "empty" }, "No step is whole yet."),
      h("div", { class: "abouts" }, runs.map(about)),
    );
    all.mark(current);
  };

  const steps = () =>
    [...new Set(gallery.runs.flatMap((run) => gallery.tables.get(run.id)?.step ?? []))].sort((a, b) => a - b);
  const key = (event) => {
    const known = steps();
    if (known.length === 0) return false;
    if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const at = current === null ? known.length - 1 : known.indexOf(current) + (event.key === "ArrowLeft" ? -1 : 1);
      all.mark(known[Math.min(Math.max(0, at), known.length - 1)]);
    } else if (event.key === "Enter" && current !== null && !document.activeElement.matches("a, button, summary"))
      gallery.go("film", { step: String(current) });
    else return false;
    return true;
  };

  gallery.views.curves = { show, refresh: show, key };
})();
