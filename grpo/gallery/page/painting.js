// The page of one painting: the picture, how its reward came about, what the judge said, its sketch, its numbers.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h, number } = gallery;
  const TIMES = {
    sampled: "sampled after",
    scored: "scored after",
    queue: "in the queue",
    load: "page loaded in",
    run: "sketch painted in",
    read: "pixels read in",
    total: "painting in all",
    cpu: "CPU of the browser",
  };
  const turnOf = ([name]) => (name in TIMES ? Object.keys(TIMES).indexOf(name) : 99);
  let order = [];
  let at = -1;

  const scores = (painting, detail) => {
    const run = gallery.run(painting.run);
    const terms = Object.entries(detail.terms ?? {});
    if (terms.length === 0) return null;
    const parts = terms.map(([name, value]) => [name, value, run.weights[name]]);
    const bar = h(
      "div",
      { class: "parts", "aria-hidden": "true" },
      parts
        .filter(([, value, weight]) => value > 0 && weight > 0)
        .map(([name, value, weight], index) => {
          const part = h("i", { class: `c${index % 6}`, title: name });
          part.style.width = `${100 * value * weight}%`;
          return part;
        }),
    );
    const info = (name) => {
      const found = Object.entries(detail.terms_info?.[name] ?? {}).filter(([, value]) =>
        ["number", "string", "boolean"].includes(typeof value),
      );
      return (
        found.length > 0 &&
        name !== "judge" &&
        found.map(([key, value]) => `${key} ${typeof value === "number" ? number(value, 2) : value}`).join(" · ")
      );
    };
    let colour = -1;
    return h(
      "section",
      { class: "scores" },
      h("h2", null, "How the reward came about"),
      bar,
      h(
        "table",
        null,
        h(
          "thead",
          null,
          h(
            "tr",
            null,
            ["term", "score", "weight", "adds"].map((name) => h("th", { scope: "col" }, name)),
          ),
        ),
        h(
          "tbody",
          null,
          parts.map(([name, value, weight]) => {
            if (value > 0 && weight > 0) colour += 1;
            const said = info(name);
            return [
              h(
                "tr",
                null,
                h(
                  "th",
                  { scope: "row" },
                  h("i", { class: value > 0 && weight > 0 ? `dot c${colour % 6}` : "dot" }),
                  gallery.termName(run, name),
                ),
                h("td", null, number(value)),
                h("td", null, number(weight, 2)),
                h("td", null, number(weight === undefined || value === null ? null : value * weight)),
              ),
              said && h("tr", { class: "info" }, h("td", { colspan: "4" }, said)),
            ];
          }),
        ),
        h(
          "tfoot",
          null,
          h("tr", null, h("th", { scope: "row", colspan: "3" }, "reward"), h("td", null, number(painting.reward))),
        ),
      ),
    );
  };

  const facts = (painting, detail) => {
    const drawn = detail.painting;
    const rows = [
      ["subject", painting.subject],
      ["tokens", `${painting.tokens}${detail.finished ? "" : ", cut at the limit"}`],
      ["advantage", painting.flight ? "not yet" : number(painting.advantage)],
      drawn && ["canvas", `${drawn.width} × ${drawn.height}, ${number(100 * drawn.coverage, 1)} % painted`],
      drawn && [
        "drawn",
        `${gallery.plural(drawn.shapes, "filled shape")}, ${drawn.circles} of them circles, ${drawn.vertices} vertices`,
      ],
      drawn && drawn.attempt > 1 && ["attempts", String(drawn.attempt)],
      drawn?.errors?.length > 0 && ["errors", drawn.errors.join("; ")],
      ...Object.entries({ ...detail.timings, ...drawn?.timings })
        .sort((a, b) => turnOf(a) - turnOf(b))
        .map(([name, value]) => [TIMES[name] ?? name, `${number(value, 2)} s`]),
    ].filter(Boolean);
    return h(
      "section",
      { class: "facts" },
      h("h2", null, "Numbers"),
      h(
        "dl",
        null,
        rows.map(([name, value]) => h("div", null, h("dt", null, name), h("dd", null, value))),
      ),
    );
  };

  const siblings = (painting) => {
    const group = gallery.paintings.filter(
      (one) => one.run === painting.run && one.step === painting.step && one.group === painting.group,
    );
    return h(
      "section",
      { class: "siblings" },
      h("h2", null, "Its group"),
      h(
        "div",
        null,
        group.map((one) =>
          h(
            "a",
            {
              href: gallery.link(one),
              "aria-label": gallery.label(one),
              "aria-current": one === painting ? "true" : null,
              title: gallery.verdict(one),
            },
            gallery.picture(one, one.thumb, { loading: "lazy" }),
          ),
        ),
      ),
    );
  };

  const sketch = (detail) => {
    const source = detail.sketch ? (detail.source ?? detail.text) : null;
    const reply = source !== detail.text;
    return [
      source && h("section", null, h("h2", null, "Sketch"), gallery.code(source, detail.painting?.line ?? null)),
      reply &&
        h(
          "section",
          null,
          source
            ? h("details", null, h("summary", null, "The whole reply"), h("pre", { class: "code plain" }, detail.text))
            : [h("h2", null, "Reply"), h("pre", { class: "code plain" }, detail.text)],
        ),
    ];
  };

  const step = (by) => {
    const other = order[at + by];
    if (other) gallery.go(`painting/${encodeURIComponent(other.run)}/${other.step}/${other.index}`, {}, true);
  };
  // A finger that moves sideways over the painting turns the page.
  const swipe = {
    start: (event) => {
      swipe.from = event.touches.length === 1 ? event.touches[0] : null;
    },
    end: (event) => {
      const [from, to] = [swipe.from, event.changedTouches[0]];
      const along = from ? to.clientX - from.clientX : 0;
      if (Math.abs(along) > 60 && Math.abs(along) > 2 * Math.abs(to.clientY - from.clientY)) step(along < 0 ? 1 : -1);
    },
  };
  const back = () => gallery.go(gallery.back?.name ?? "wall", gallery.back?.parameters ?? {});

  const show = async (view, parameters, key) => {
    const painting = gallery.byKey.get(key);
    if (!painting) {
      view.replaceChildren(h("p", { class: "empty" }, "There is no such painting in this gallery."));
      return;
    }
    gallery.opened = key;
    order = gallery.order?.includes(painting) ? gallery.order : gallery.chosen({ run: painting.run, down: "0" });
    at = order.indexOf(painting);
    const detail = await gallery.detail(painting);
    if (gallery.path !== `painting/${key}`) return; // another one was opened in the meantime
    const source = detail?.sketch ? (detail.source ?? detail.text) : null;
    const turn = (by, sign, name) =>
      h("button", { type: "button", "aria-label": name, disabled: !order[at + by], onclick: () => step(by) }, sign);
    view.replaceChildren(
      h(
        "article",
        { class: "painting" },
        h(
          "div",
          { class: "hung" },
          h(
            "div",
            { class: "canvas", ontouchstart: swipe.start, ontouchend: swipe.end },
            painting.image
              ? h(
                  "a",
                  { href: painting.image, "aria-label": `The picture alone: ${gallery.label(painting)}` },
                  gallery.picture(painting, painting.image),
                )
              : gallery.picture(painting),
          ),
          h(
            "p",
            { class: "plate" },
            turn(-1, "←", "Painting before"),
            h(
              "span",
              null,
              h("b", { class: painting.outcome }, gallery.verdict(painting)),
              h("span", { class: "quiet" }, `${painting.run}, step ${painting.step}, no. ${painting.index}`),
            ),
            turn(1, "→", "Next painting"),
          ),
          detail && gallery.repainting(painting, detail, source),
        ),
        h(
          "div",
          { class: "told" },
          painting.outcome !== "scored" &&
            h(
              "p",
              { class: "why" },
              h("b", null, gallery.verdict(painting)),
              detail?.detail && `. ${detail.detail}`,
              detail?.painting?.line && ` (line ${detail.painting.line})`,
            ),
          detail
            ? [scores(painting, detail), facts(painting, detail)]
            : h("p", { class: "empty" }, "The details of this step are not in this folder."),
          siblings(painting),
        ),
      ),
      ...(detail ? [gallery.judged(painting, detail), ...sketch(detail)] : []).flat().filter(Boolean),
    );
    for (const near of [order[at + 1], order[at - 1]]) if (near?.image) new Image().src = near.image;
  };

  const key = (event) => {
    if (event.key === "ArrowLeft") step(-1);
    else if (event.key === "ArrowRight") step(1);
    else if (event.key === "Escape") back();
    else if (event.key === "p") document.getElementById("repaint")?.click();
    else return false;
    return true;
  };

  gallery.views.painting = { show, key };
})();
