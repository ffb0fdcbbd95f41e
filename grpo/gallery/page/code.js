// A sketch's source with line numbers and highlighting, and a chip of paint beside each colour.
"use strict";
(() => {
  const { h } = window.gallery;
  const KEYWORDS =
    "const let var function return for while do if else of in new class extends this break continue switch case default try catch finally throw typeof async await yield null true false undefined".split(
      " ",
    );
  const WORDS = new Set(KEYWORDS);
  const TOKEN =
    /(?<comment>\/\/.*|\/\*[^]*?(?:\*\/|$))|(?<string>"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|`(?:\\[^]|[^`\\])*`?)|(?<number>\b(?:0x[\da-f]+|\d+\.?\d*(?:e[-+]?\d+)?|\.\d+)\b)|(?<brush>\bbrush\s*\.\s*\w+)|(?<name>[A-Za-z_$][\w$]*)/gi;
  const COLOUR = /^["'`](#(?:[\da-f]{8}|[\da-f]{6}|[\da-f]{4}|[\da-f]{3}))["'`]$/i;

  const kindOf = (groups, rest) => {
    if (groups.name === undefined) return Object.keys(groups).find((kind) => groups[kind] !== undefined);
    if (WORDS.has(groups.name)) return "keyword";
    return /^\s*\(/.test(rest) ? "call" : null;
  };

  const pieces = function* (source) {
    let at = 0;
    for (const match of source.matchAll(TOKEN)) {
      if (match.index > at) yield [null, source.slice(at, match.index)];
      at = match.index + match[0].length;
      yield [kindOf(match.groups, source.slice(at, at + 9)), match[0]];
    }
    if (at < source.length) yield [null, source.slice(at)];
  };

  const chip = (text) => {
    const colour = COLOUR.exec(text)?.[1];
    if (!colour) return null;
    const element = h("i", { class: "chip", "aria-hidden": "true" });
    element.style.background = colour;
    return element;
  };

  // marked: number of the line that the verdict speaks of, or null.
  window.gallery.code = (source, marked = null) => {
    const lines = [[]];
    for (const [kind, text] of pieces(source)) {
      text.split("\n").forEach((part, at) => {
        if (at > 0) lines.push([]);
        if (part === "") return;
        if (kind === "string" && at === 0) lines.at(-1).push(chip(text));
        lines.at(-1).push(kind ? h("span", { class: kind }, part) : part);
      });
    }
    return h(
      "pre",
      { class: "code", tabindex: "0", role: "region", "aria-label": "Source of the sketch" },
      h(
        "code",
        null,
        lines.map((line, at) => h("span", { class: at + 1 === marked ? "line marked" : "line" }, line, "\n")),
      ),
    );
  };
})();
