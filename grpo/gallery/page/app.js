// The address, the keys, the theme, the live refresh: what holds the views together.
//
// Address: #VIEW?parameters or #painting/RUN/STEP/INDEX. Going back in the browser's history works as everywhere.
"use strict";
(() => {
  const gallery = window.gallery;
  const { h } = gallery;
  const view = document.getElementById("view");
  const VIEWS = ["wall", "best", "film", "curves"];
  const KEYS = [
    ["1 2 3 4", "wall, best, film, curves"],
    ["← → ↑ ↓", "on a wall: from painting to painting; Enter opens it"],
    ["← →", "on a painting: the one before, the next; in the film: step by step (with Shift ten)"],
    ["Home End", "first, last"],
    ["Esc", "from a painting back to where you were"],
    ["p", "on a painting: paint its sketch again, here"],
    ["Space", "in the film: play, pause"],
    ["+ −", "on a wall: larger, smaller"],
    ["s r", "on a wall: to the sorting, to its direction"],
    ["d", "light, dark, or as the system has it"],
    ["?", "this list"],
  ];
  const scrolled = new Map(); // address -> where its page was scrolled to
  let name = "";
  let shownAt = "";

  gallery.address = (path, parameters = {}) => {
    const own = Object.entries(parameters).filter(
      ([key, value]) => value !== undefined && value !== gallery.defaults[key],
    );
    return `#${path}${own.length > 0 ? `?${new URLSearchParams(own)}` : ""}`;
  };
  gallery.go = (path, parameters = {}, replace = false) => {
    const address = gallery.address(path, parameters);
    if (replace) {
      history.replaceState(null, "", address);
      route();
    } else if (address === location.hash) route();
    else location.hash = address;
  };

  const route = async () => {
    scrolled.set(shownAt, window.scrollY);
    const [path, query] = location.hash.slice(1).split("?");
    const [first, ...rest] = path.split("/");
    const before = name;
    gallery.views[before]?.hide?.();
    if (before && before !== "painting") gallery.back = { name: before, parameters: gallery.parameters };
    name = first in gallery.views ? first : "wall";
    gallery.came = before;
    gallery.parameters = Object.fromEntries(new URLSearchParams(query ?? ""));
    const key = rest.map(decodeURIComponent).join("/");
    gallery.path = `${name}/${key}`;
    shownAt = location.hash;
    document.body.dataset.view = name;
    for (const link of document.querySelectorAll("nav a"))
      link.toggleAttribute("aria-current", link.dataset.view === name);
    await gallery.views[name].show(view, gallery.parameters, key);
    if (name !== before || name === "painting")
      window.scrollTo(0, name !== "painting" && before === "painting" ? (scrolled.get(shownAt) ?? 0) : 0);
    document.title =
      name === "painting" ? `${key} – ${title()}` : `${name[0].toUpperCase()}${name.slice(1)} – ${title()}`;
  };
  const title = () => gallery.runs.map((run) => run.id).join(", ") || "Gallery";

  // ---- keys ---------------------------------------------------------------------------------------------------
  const dialog = document.getElementById("keys");
  const help = () => {
    if (dialog.open) return dialog.close();
    dialog.replaceChildren(
      h("h2", null, "Keys"),
      h(
        "dl",
        null,
        KEYS.map(([keys, what]) =>
          h(
            "div",
            null,
            h(
              "dt",
              null,
              keys.split(" ").map((key) => h("kbd", null, key)),
            ),
            h("dd", null, what),
          ),
        ),
      ),
      h(
        "p",
        { class: "quiet" },
        "The address of what you see can be kept and shared. Scores of parts called stand-ins are those of small local scorers.",
      ),
      h("button", { type: "button", onclick: () => dialog.close() }, "Close"),
    );
    return dialog.showModal();
  };
  document.getElementById("help").addEventListener("click", help);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") return help();
    const typing = event.target.matches("select, textarea, input:not([type=range])");
    if (dialog.open || typing || (event.target.matches("input[type=range]") && event.key.startsWith("Arrow"))) return;
    if (event.key === " " && event.target.matches("button, summary, a")) return;
    const number = VIEWS[Number(event.key) - 1];
    if (number) gallery.go(number);
    else if (event.key === "d") turnTheme();
    else if (gallery.views[name]?.key?.(event)) event.preventDefault();
  });

  // ---- light and dark -----------------------------------------------------------------------------------------
  const THEMES = { auto: "◐", light: "○", dark: "●" };
  let theme = "auto";
  const setTheme = (wanted) => {
    theme = wanted in THEMES ? wanted : "auto";
    document.documentElement.dataset.theme = theme;
    const button = document.getElementById("theme");
    button.textContent = THEMES[theme];
    button.title = `Light or dark: ${theme === "auto" ? "as the system has it" : theme}`;
  };
  const turnTheme = () => {
    const names = Object.keys(THEMES);
    setTheme(names[(names.indexOf(theme) + 1) % names.length]);
    try {
      localStorage.setItem("gallery-theme", theme);
    } catch {
      // A page from disk may have no storage: the choice lasts as long as the page.
    }
  };
  const keptTheme = () => {
    try {
      return localStorage.getItem("gallery-theme") ?? "auto";
    } catch {
      return "auto";
    }
  };
  document.getElementById("theme").addEventListener("click", turnTheme);
  setTheme(keptTheme());

  // ---- live refresh -------------------------------------------------------------------------------------------
  let refreshing = Promise.resolve();
  gallery.refresh = async (version) => {
    const before = gallery.version;
    if (!(await gallery.reload(version)) || gallery.version === before) return;
    document.getElementById("title").textContent = title();
    const shown = gallery.views[name];
    if (shown?.refresh) await shown.refresh(view, gallery.parameters);
    else if (name === "painting" && !gallery.byKey.has(gallery.opened)) await route();
  };
  const listen = () => {
    if (!location.protocol.startsWith("http")) return;
    const events = new EventSource("events"); // a host without it is asked once and never again
    events.onmessage = (event) => {
      refreshing = refreshing.then(() => gallery.refresh(event.data)).catch(() => {});
    };
    events.onerror = () => {
      if (events.readyState === EventSource.CLOSED) events.close();
    };
  };

  gallery.reload().then(async (found) => {
    if (!found) {
      view.append(h("p", { class: "empty" }, "data/runs.js is missing: this folder is not whole."));
      return;
    }
    document.getElementById("title").textContent = title();
    history.scrollRestoration = "manual";
    await route();
    window.addEventListener("hashchange", route);
    listen();
  });
})();
