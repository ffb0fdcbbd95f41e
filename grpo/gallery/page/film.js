// The film: best, median and worst painting of each step, with a slider over the steps. Of several runs, each has its
// row at the same step, so that they can be laid side by side.
//
// Of the paintings of a step that have a reward and a picture: highest, middle (the better of two middle ones), lowest.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h, svg, number } = gallery;
  const ROLES = ["best", "median", "worst"];
  const SPEEDS = [
    ["1", "slow"],
    ["3", "walking"],
    ["8", "fast"],
  ]; // steps a second
  let film = null; // { view, steps, at, timer, rows, speed, held }

  const stepsOf = (run, subject) => {
    const found = new Map();
    for (const one of gallery.paintings) {
      if (one.run !== run || !one.image || one.reward === null || (subject !== "all" && one.subject !== subject))
        continue;
      if (!found.has(one.step)) found.set(one.step, []);
      found.get(one.step).push(one);
    }
    for (const [step, list] of found) {
      list.sort((a, b) => b.reward - a.reward);
      found.set(step, { best: list[0], median: list[(list.length - 1) >> 1], worst: list.at(-1), list });
    }
    return found;
  };

  const preload = (step) => {
    for (const { chosen } of film.rows) {
      for (const role of ROLES) {
        const address = chosen.get(step)?.[role].image;
        if (!address || film.held.has(address)) continue;
        const image = new Image();
        image.src = address;
        film.held.set(address, image);
        if (film.held.size > 90) film.held.delete(film.held.keys().next().value);
      }
    }
  };

  // The pictures of a step, replaced in place and only once they are decoded, so that the film never blinks.
  const draw = () => {
    const step = film.steps[film.at];
    film.slider.value = film.at;
    film.slider.setAttribute("aria-valuetext", `step ${step}`);
    film.title.textContent = `Step ${step}`;
    film.title.dataset.step = step;
    for (const row of film.rows) {
      const found = row.chosen.get(step);
      row.note.textContent = found ? gallery.plural(found.list.length, "painting") : "no painting at this step";
      const strip = (found?.list ?? []).map((one) =>
        h("a", { href: gallery.link(one), "aria-label": gallery.label(one), tabindex: "-1" }, gallery.picture(one)),
      );
      row.strip.replaceChildren(...strip);
      for (const role of ROLES) {
        const cell = row.cells[role];
        cell.link.toggleAttribute("hidden", !found);
        cell.reward.textContent = found ? number(found[role].reward) : "";
        if (!found) continue;
        cell.link.href = gallery.link(found[role]);
        cell.image.alt = `${role}: ${gallery.label(found[role])}`;
        const address = found[role].image;
        cell.wanted = address;
        const ready = film.held.get(address) ?? Object.assign(new Image(), { src: address });
        const put = () => {
          if (cell.wanted === address) cell.image.src = address;
        };
        ready.decode().then(put, put);
      }
    }
    for (let ahead = 1; ahead <= 4; ahead++) preload(film.steps[film.at + ahead]);
    history.replaceState(null, "", gallery.address("film", { ...gallery.parameters, step: String(step) }));
    gallery.parameters.step = String(step);
  };

  const to = (at) => {
    film.at = Math.min(Math.max(0, at), film.steps.length - 1);
    draw();
  };
  const stop = () => {
    if (!film) return;
    clearInterval(film.timer);
    film.timer = 0;
    film.button.textContent = "▶ Play";
    film.button.setAttribute("aria-pressed", "false");
  };
  const play = () => {
    if (film.timer) return stop();
    if (film.at >= film.steps.length - 1) to(0);
    film.timer = setInterval(
      () => {
        to(film.at + 1);
        if (film.at >= film.steps.length - 1) stop();
      },
      1000 / Number(film.speed.value),
    );
    film.button.textContent = "❚❚ Pause";
    film.button.setAttribute("aria-pressed", "true");
  };

  // The medians over the steps, drawn over the slider: where the film is, and what is to come.
  const spark = (rows, steps) => {
    const medians = rows.map(({ chosen }) => steps.map((step) => chosen.get(step)?.median.reward));
    const values = medians.flat().filter((value) => value !== undefined);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const x = (at) => (1000 * at) / Math.max(1, steps.length - 1);
    const y = (value) => 38 - (36 * (value - low)) / (high - low || 1);
    const lines = medians.map((line, row) => {
      const points = line
        .map((value, at) => value !== undefined && `${x(at).toFixed(1)},${y(value).toFixed(1)}`)
        .filter(Boolean);
      return svg("polyline", {
        class: `stroke c${gallery.runs.indexOf(rows[row].run) % 6}`,
        points: points.join(" "),
        "vector-effect": "non-scaling-stroke",
      });
    });
    return svg(
      "svg",
      {
        class: "spark",
        viewBox: "0 0 1000 40",
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": "Median reward of each step",
      },
      lines,
    );
  };

  const rowOf = (run, chosen) => {
    const cells = Object.fromEntries(
      ROLES.map((role) => {
        const [image, reward] = [h("img", { alt: "" }), h("b", null)];
        return [
          role,
          {
            image,
            reward,
            link: h(
              "a",
              null,
              h("span", { class: "frame" }, image),
              h("span", { class: "caption" }, h("span", null, role), reward),
            ),
          },
        ];
      }),
    );
    const note = h("span", { class: "quiet" });
    const strip = h("div", { class: "strip" });
    const three = h(
      "div",
      { class: "three" },
      ROLES.map((role) => cells[role].link),
    );
    const element = h(
      "section",
      { class: "reel", "aria-label": run.id },
      h("h2", null, gallery.runs.length > 1 ? run.id : "", " ", note),
      three,
      strip,
    );
    return { run, chosen, cells, note, strip, element };
  };

  const show = (view, parameters) => {
    const subject = parameters.subject ?? "all";
    const wanted = parameters.run ?? "all";
    const rows = gallery.runs
      .filter((run) => wanted === "all" || run.id === wanted)
      .map((run) => rowOf(run, stepsOf(run.id, subject)));
    const steps = [...new Set(rows.flatMap((row) => [...row.chosen.keys()]))].sort((a, b) => a - b);
    if (steps.length === 0) {
      view.replaceChildren(h("p", { class: "empty" }, "No step of this gallery has a painting with a reward yet."));
      film = null;
      return;
    }
    const at =
      parameters.step === undefined
        ? steps.length - 1
        : Math.max(
            0,
            steps.findLastIndex((step) => step <= Number(parameters.step)),
          );
    const change = (name) => (event) => gallery.go("film", { ...gallery.parameters, [name]: event.target.value });
    const subjects = [...new Set(gallery.paintings.map((painting) => painting.subject))];
    const select = (label, name, current, names) =>
      h(
        "label",
        null,
        h("span", null, label),
        h(
          "select",
          { name, onchange: change(name) },
          ["all", ...names].map((one) => h("option", { value: one, selected: one === current }, one)),
        ),
      );
    film = {
      rows,
      steps,
      at,
      held: new Map(),
      timer: 0,
      title: h("h2", { class: "step" }),
      button: h(
        "button",
        { type: "button", id: "play", class: "main", "aria-pressed": "false", onclick: play },
        "▶ Play",
      ),
      speed: h(
        "select",
        { "aria-label": "Speed", onchange: () => film.timer && (stop(), play()) },
        SPEEDS.map(([value, words]) => h("option", { value, selected: value === "3" }, words)),
      ),
      slider: h("input", {
        type: "range",
        min: "0",
        max: String(steps.length - 1),
        step: "1",
        "aria-label": "Step",
        oninput: (event) => (stop(), to(Number(event.target.value))),
      }),
    };
    view.replaceChildren(
      h(
        "div",
        { class: "film" },
        h(
          "div",
          { class: rows.length > 1 ? "reels several" : "reels" },
          rows.map((row) => row.element),
        ),
        h(
          "div",
          { class: "bar deck" },
          film.title,
          film.button,
          h("div", { class: "track" }, spark(rows, steps), film.slider),
          film.speed,
          gallery.runs.length > 1 &&
            select(
              "Run",
              "run",
              wanted,
              gallery.runs.map((run) => run.id),
            ),
          subjects.length > 1 && select("Subject", "subject", subject, subjects),
        ),
      ),
    );
    draw();
  };

  const refresh = (view, parameters) => {
    const newest = film === null || film.at === film.steps.length - 1;
    const playing = Boolean(film?.timer);
    stop();
    show(view, newest && !playing ? { ...parameters, step: undefined } : parameters);
    if (playing) play();
  };

  const key = (event) => {
    if (!film) return false;
    if (event.key === " ") play();
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      stop();
      to(film.at + (event.key === "ArrowLeft" ? -1 : 1) * (event.shiftKey ? 10 : 1));
    } else if (event.key === "Home") to(0);
    else if (event.key === "End") to(film.steps.length - 1);
    else return false;
    return true;
  };

  gallery.views.film = { show, refresh, key, hide: stop };
})();
