// The wall: every chosen painting, of which only those near the window stand in the page.
//
// The list has its whole height from the start, so that the scroll bar tells the truth. Tiles within AHEAD windows above
// and below are kept ready, pictures included; the rest of the small pictures are fetched when nothing else is to do.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h } = gallery;
  const AHEAD = 2.5;
  const GAP = 14;
  const WIDTHS = [120, 168, 232, 320]; // pixels that a tile has at least, from the smallest to the largest
  const CAPTION = 34;
  const FETCHED = 1500; // small pictures of some 3 kB each
  let width = 1; // of WIDTHS
  let wall = null; // { list, tiles, columns, side, row, current }
  let frame = 0;

  const caption = (painting) =>
    h(
      "span",
      { class: "caption" },
      h("b", { class: painting.outcome }, painting.outcome === "scored" ? gallery.verdict(painting) : painting.outcome),
      h(
        "span",
        null,
        `${painting.flight ? "now · " : ""}${painting.step}${gallery.runs.length > 1 ? ` · ${painting.run}` : ""}`,
      ),
    );

  const tile = (painting, at) => {
    const element = h(
      "a",
      {
        class: "tile",
        href: gallery.link(painting),
        "aria-label": gallery.label(painting),
        tabindex: at === wall.current ? "0" : "-1",
      },
      h("span", { class: "frame" }, gallery.picture(painting)),
      caption(painting),
    );
    element.firstChild.style.background = painting.colour ?? "";
    place(element, at);
    return element;
  };
  const place = (element, at) => {
    const { columns, side, row } = wall;
    element.style.width = `${side}px`;
    element.style.transform = `translate(${(at % columns) * (side + GAP)}px, ${Math.floor(at / columns) * row}px)`;
    element.firstChild.style.height = `${side}px`;
  };

  const measure = () => {
    const space = wall.element.clientWidth;
    wall.columns = Math.max(space < 500 ? [4, 3, 2, 1][width] : 2, Math.floor((space + GAP) / (WIDTHS[width] + GAP)));
    wall.side = Math.floor((space + GAP) / wall.columns - GAP);
    wall.row = wall.side + CAPTION + GAP;
    wall.element.style.height = `${Math.ceil(wall.list.length / wall.columns) * wall.row}px`;
  };

  const draw = () => {
    frame = 0;
    if (!wall || !wall.element.isConnected) return;
    const top = -wall.element.getBoundingClientRect().top;
    const high = window.innerHeight;
    const first = Math.max(0, Math.floor((top - AHEAD * high) / wall.row) * wall.columns);
    const last = Math.min(wall.list.length, Math.ceil((top + (1 + AHEAD) * high) / wall.row) * wall.columns);
    const wanted = new Map(wall.list.slice(first, last).map((painting, at) => [painting.key, first + at]));
    if (wall.current < wall.list.length) wanted.set(wall.list[wall.current].key, wall.current); // keeps the focus
    for (const [key, element] of wall.tiles) {
      if (wanted.has(key)) continue;
      element.remove();
      wall.tiles.delete(key);
    }
    const fresh = document.createDocumentFragment();
    for (const [key, at] of wanted) {
      if (wall.tiles.has(key)) continue;
      const element = tile(wall.list[at], at);
      wall.tiles.set(key, element);
      fresh.append(element);
    }
    wall.element.append(fresh);
  };
  const drawSoon = () => {
    frame ||= requestAnimationFrame(draw);
  };

  // Fetch the small pictures that no tile has asked for yet, in the order of the wall: from disk all of them, from a web
  // host as many as a visitor may come to see, unless the visitor saves data.
  const fetchRest = (of) => {
    const most = location.protocol === "file:" ? Infinity : navigator.connection?.saveData ? 0 : FETCHED;
    const rest = of.list.slice(0, most).filter((painting) => painting.thumb && !of.kept.has(painting.thumb));
    const more = async () => {
      while (rest.length > 0 && wall === of) {
        await Promise.all(rest.splice(0, 64).map((painting) => keep(of, painting.thumb)));
      }
    };
    setTimeout(more, 50);
  };
  const keep = (of, address) =>
    new Promise((resolve) => {
      const image = new Image();
      image.onload = image.onerror = resolve;
      image.src = address;
      of.kept.set(address, image);
    });

  // For whoever measures: when the first tiles stand on the wall with their pictures.
  const markFirst = async () => {
    const images = [...wall.element.querySelectorAll("img")].filter(
      (image) => image.getBoundingClientRect().top < window.innerHeight,
    );
    await Promise.all(images.map((image) => image.decode().catch(() => {})));
    requestAnimationFrame(() => setTimeout(() => performance.mark("wall-shown")));
  };

  const hang = (list, current = 0) => {
    wall = { ...wall, list, current, tiles: new Map(), kept: wall.kept ?? new Map() };
    wall.element.replaceChildren();
    gallery.order = list;
    if (list.length === 0)
      wall.element.append(
        h("p", { class: "empty" }, "No painting here. Choose another outcome, or wait for the first step."),
      );
    measure();
    draw();
    if (performance.getEntriesByName("wall-shown").length === 0 && list.length > 0) markFirst();
    fetchRest(wall);
  };

  const focus = (at) => {
    const { list, columns, row } = wall;
    if (list.length === 0) return;
    wall.tiles.get(list[wall.current]?.key)?.setAttribute("tabindex", "-1");
    wall.current = Math.min(Math.max(0, at), list.length - 1);
    const top = wall.element.getBoundingClientRect().top + Math.floor(wall.current / columns) * row;
    const bar = document.querySelector("header").offsetHeight + 8;
    if (top < bar) window.scrollBy(0, top - bar);
    else if (top + row > window.innerHeight) window.scrollBy(0, top + row - window.innerHeight);
    draw();
    const element = wall.tiles.get(list[wall.current].key);
    element.setAttribute("tabindex", "0");
    element.focus({ preventScroll: true });
  };

  const move = {
    ArrowLeft: () => -1,
    ArrowRight: () => 1,
    ArrowUp: () => -wall.columns,
    ArrowDown: () => wall.columns,
  };
  const key = (event) => {
    if (event.key in move) {
      const inside = wall.element.contains(document.activeElement);
      focus(inside ? wall.current + move[event.key]() : wall.current);
    } else if (event.key === "Home") focus(0);
    else if (event.key === "End") focus(wall.list.length - 1);
    else if (event.key === "+" || event.key === "-") resize(event.key === "+" ? 1 : -1);
    else if (event.key === "s" || event.key === "r")
      document.querySelector(event.key === "s" ? ".bar select" : ".bar button").focus();
    else return false;
    return true;
  };

  const resize = (by) => {
    const top = wall.list[Math.max(0, Math.round(-wall.element.getBoundingClientRect().top / wall.row)) * wall.columns];
    width = Math.min(Math.max(0, width + by), WIDTHS.length - 1);
    hang(wall.list, wall.current);
    if (top) window.scrollTo(0, wall.element.offsetTop + Math.floor(wall.list.indexOf(top) / wall.columns) * wall.row);
  };

  const show = (view, parameters, choose) => {
    const list = choose(parameters);
    const element = h("div", { class: "wall", role: "group", "aria-label": "Paintings" });
    wall = { element, kept: new Map(), list };
    view.replaceChildren(barOf(parameters, list), element);
    const opened = list.findIndex((painting) => painting.key === gallery.opened);
    hang(list, Math.max(0, opened));
    if (opened > 0 && gallery.came === "painting") focus(opened);
  };
  let barOf = null;
  window.addEventListener("scroll", drawSoon, { passive: true });
  window.addEventListener("resize", () => {
    if (!wall?.element.isConnected) return;
    measure();
    for (const [key, element] of wall.tiles)
      place(
        element,
        wall.list.findIndex((painting) => painting.key === key),
      );
    drawSoon();
  });

  // New rollouts are hung without losing the place: what stood at the top of the window stays there.
  const refresh = (choose) => (view, parameters) => {
    const at = Math.max(0, Math.floor(-wall.element.getBoundingClientRect().top / wall.row)) * wall.columns;
    const [top, focused] = [wall.list[at]?.key, wall.list[wall.current]?.key];
    const held = wall.element.contains(document.activeElement);
    const list = choose(parameters);
    const [index, current] = [top, focused].map((key) => list.findIndex((painting) => painting.key === key));
    view.firstChild.replaceWith(barOf(parameters, list));
    hang(list, Math.max(0, current));
    if (at > 0 && index >= 0) window.scrollBy(0, (Math.floor(index / wall.columns) - at / wall.columns) * wall.row);
    if (held) wall.tiles.get(focused)?.focus({ preventScroll: true });
  };

  const change = (name) => (chosen) => gallery.go(name, { ...gallery.parameters, ...chosen });
  const everything = (parameters) => gallery.chosen(parameters);
  const wallBar = (parameters, list) => gallery.bar(parameters, change("wall"), list.length);
  gallery.views.wall = {
    show: (view, parameters) => {
      barOf = wallBar;
      show(view, parameters, everything);
    },
    refresh: refresh(everything),
    key,
  };

  // The N best: one size of wall, ordered by reward.
  const COUNTS = ["12", "24", "48", "96"];
  const best = (parameters) => {
    const count = Number(parameters.count ?? gallery.defaults.count) || 24;
    const { run, subject } = parameters;
    return gallery.chosen({ sort: "reward", down: "1", outcome: "scored", run, subject }).slice(0, count);
  };
  const bestBar = (parameters, list) =>
    h(
      "form",
      { class: "bar", onsubmit: (event) => event.preventDefault() },
      h(
        "span",
        { class: "count" },
        `The ${list.length} best of `,
        gallery.plural(gallery.paintings.length, "painting"),
      ),
      h(
        "span",
        { class: "buttons" },
        COUNTS.map((count) =>
          h(
            "button",
            {
              type: "button",
              "aria-pressed": String(count === (parameters.count ?? gallery.defaults.count)),
              onclick: () => change("best")({ count }),
            },
            count,
          ),
        ),
      ),
      gallery.runs.length > 1 &&
        h(
          "span",
          { class: "buttons" },
          ["all", ...gallery.runs.map((run) => run.id)].map((run) =>
            h(
              "button",
              {
                type: "button",
                "aria-pressed": String(run === (parameters.run ?? "all")),
                onclick: () => change("best")({ run }),
              },
              run === "all" ? "every run" : run,
            ),
          ),
        ),
    );
  gallery.views.best = {
    show: (view, parameters) => {
      barOf = bestBar;
      show(view, parameters, best);
    },
    refresh: refresh(best),
    key,
  };
})();
