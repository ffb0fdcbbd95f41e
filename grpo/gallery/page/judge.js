// What the judge said: the painting beside each reference that it was compared with.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h, number } = gallery;
  const FIRST = ["The painting shown first", "The reference shown first"];

  const reference = (run, name) => {
    const tier = run.references[name];
    return h(
      "figure",
      null,
      tier
        ? h("img", {
            src: `references/${encodeURIComponent(run.id)}/${encodeURIComponent(name)}.png`,
            alt: `Reference ${name}`,
            loading: "lazy",
          })
        : h("div", { class: "words" }, "Its picture was not at hand when this gallery was built."),
      h("figcaption", null, name.replaceAll("_", " "), tier && h("span", { class: `tier ${tier}` }, tier)),
    );
  };

  const comparison = (painting, run, name, info) => {
    const share = info.won?.[name];
    const orders = info.orders?.[name] ?? [];
    const reasons = (info.reasons?.[name] ?? []).map(
      (reason, at) => reason && h("p", { class: "reason" }, h("span", { class: "quiet" }, `${FIRST[at]}: `), reason),
    );
    const won = typeof share === "number";
    const bar = h(
      "div",
      {
        class: "share",
        role: "img",
        "aria-label": won ? `The painting wins ${number(100 * share, 0)} %` : "No answer",
      },
      h("i"),
    );
    bar.firstChild.style.width = `${won ? 100 * share : 0}%`;
    return h(
      "article",
      { class: "comparison" },
      h(
        "div",
        { class: "two" },
        h(
          "figure",
          null,
          gallery.picture(painting, painting.image, { loading: "lazy" }),
          h("figcaption", null, "this painting"),
        ),
        reference(run, name),
      ),
      bar,
      won
        ? h(
            "p",
            null,
            h("b", null, `${number(100 * share, 0)} %`),
            ` of the comparison won`,
            orders.length === 2 &&
              h(
                "span",
                { class: "quiet" },
                `  (shown first ${number(orders[0], 2)}, second ${number(1 - orders[1], 2)})`,
              ),
          )
        : h("p", { class: "quiet" }, `No answer: ${info.missing?.[name] ?? "unknown"}`),
      reasons,
    );
  };

  // The section of a painting's page, or null where no judge was asked.
  gallery.judged = (painting, detail) => {
    const run = gallery.run(painting.run);
    const info = detail.terms_info?.judge;
    const names = [...new Set([...Object.keys(info?.won ?? {}), ...Object.keys(info?.missing ?? {})])];
    if (names.length === 0) return null;
    const notes = [
      info.bias !== null && info.bias !== undefined && `leaning to the first place ${number(info.bias)} (log-odds)`,
      info.split > 0 && `${gallery.plural(info.split, "comparison")} undecided: each order named the same place`,
    ].filter(Boolean);
    return h(
      "section",
      { class: "judge" },
      h("h2", null, `Beside the references`),
      h("p", { class: "quiet" }, `${gallery.termName(run, "judge")}${notes.length ? `; ${notes.join("; ")}` : ""}`),
      h(
        "div",
        { class: "comparisons" },
        names.map((name) => comparison(painting, run, name, info)),
      ),
    );
  };
})();
