// The rating page. What is rated goes into a queue that outlives the page (localStorage) and is sent in order, one at a
// time, until the server says that it is on the disk. Only then is it shown as saved.
"use strict";

const RATINGS = ["love", "okay", "nope", "meh"];
const KEYS = { 1: "love", 2: "okay", 3: "nope", 4: "meh" };
const $ = (id) => document.getElementById(id);
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

let token = "", folder = "", items = [], strengths = {};
let history = []; // events that count, the oldest first
let queue = []; // events that are not on the disk yet
let current = null; // name of the painting shown
let pairing = false, pair = null, pairTurn = 0;
let sending = false, trouble = "";

// ---- what is known ----------------------------------------------------------------------------------------------

function ratings() {
  const found = new Map();
  for (const event of history) if (event.kind === "rate") found.set(event.name, event);
  return found;
}

function apply(event) {
  if (event.kind === "undo") history = history.filter((other) => other.id !== event.undoes);
  else if (!history.some((other) => other.id === event.id)) history.push(event);
}

const roundOf = (item) => String(item.refinement_round ?? "");

function passes(item, rated) {
  const wanted = { rating: $("filter-rating").value, model: $("filter-model").value, round: $("filter-round").value };
  const rating = rated.get(item.name)?.rating ?? "unrated";
  return (!wanted.rating || wanted.rating === rating) && (!wanted.model || wanted.model === item.generator_model)
    && (!wanted.round || wanted.round === roundOf(item));
}

// The next painting after (or before) the current one that the filters leave.
function neighbour(direction) {
  const rated = ratings(), start = items.findIndex((item) => item.name === current);
  for (let index = start + direction; index >= 0 && index < items.length; index += direction)
    if (passes(items[index], rated)) return items[index].name;
  return null;
}

// ---- saving -----------------------------------------------------------------------------------------------------

const keep = () => localStorage.setItem(`queue ${folder}`, JSON.stringify(queue));

function record(event) {
  const whole = { id: crypto.randomUUID(), ...event };
  apply(whole);
  queue.push(whole);
  keep();
  send();
  return whole;
}

async function send() {
  if (sending) return;
  sending = true;
  while (queue.length) {
    try {
      const answer = await fetch("/rate", {
        method: "POST", body: JSON.stringify(queue[0]), signal: AbortSignal.timeout(10000),
        headers: { "Content-Type": "application/json", "X-Rating-Token": token },
      });
      if (answer.status === 403) { // the command was started again
        await refresh();
        continue;
      }
      const body = await answer.json();
      if (answer.status === 400) {
        const [lost] = queue.splice(0, 1);
        history = history.filter((event) => event.id !== lost.id);
        keep();
        trouble = `one was refused: ${body.error}`;
      } else if (!answer.ok) {
        throw new Error(body.error);
      } else {
        queue.shift();
        keep();
        trouble = "";
        strengths = body.strengths;
      }
    } catch (error) {
      trouble = error instanceof TypeError || error.name === "TimeoutError"
        ? "the command is not running; kept here, saved when it is back" : error.message;
      show();
      await pause(700);
    }
    show();
  }
  sending = false;
  show();
}

async function refresh() {
  const session = await (await fetch("/session")).json();
  if (folder && session.folder !== folder)
    throw new Error(`another folder is being rated at this address now; start the command for ${folder} again`);
  ({ token, items, strengths, folder } = session);
  history = session.events;
  queue.forEach(apply);
}

// ---- what a person does -----------------------------------------------------------------------------------------

function rate(rating) {
  if (pairing || current === null) return;
  const rated = current;
  record({ kind: "rate", name: rated, rating });
  const next = neighbour(1) ?? firstOf(rated);
  if (next !== null || $("filter-rating").value === "unrated") current = next;
  show();
}

// Behind the end of the list: the first painting that is left of those that the filters show.
function firstOf(except) {
  if ($("filter-rating").value !== "unrated") return null;
  const rated = ratings();
  return items.find((item) => item.name !== except && passes(item, rated))?.name ?? null;
}

function choose(winner) {
  if (!pair) return;
  record({ kind: "pair", left: pair[0], right: pair[1], winner });
  nextPair();
}

function undo() {
  const last = history.at(-1);
  if (!last) return;
  record({ kind: "undo", undoes: last.id });
  setMode(last.kind === "pair");
  if (last.kind === "pair") {
    pairTurn += 1;
    pair = [last.left, last.right];
  } else current = last.name;
  show();
}

function move(direction) {
  const next = neighbour(direction);
  if (next !== null) current = next;
  show();
}

function setMode(pairs) {
  pairing = pairs;
  pair = pairs ? pair : null;
}

async function nextPair() {
  const turn = (pairTurn += 1);
  pair = null;
  show();
  while (turn === pairTurn && pairing) {
    if (!queue.length) {
      const wanted = { rating: $("filter-rating").value, model: $("filter-model").value, round: $("filter-round").value };
      try {
        const answer = await (await fetch(`/pair?${new URLSearchParams(wanted)}`)).json();
        if (turn === pairTurn) pair = answer.pair ?? [];
        break;
      } catch { trouble = "the command is not running"; }
      show();
    }
    await pause(queue.length ? 20 : 700);
  }
  show();
}

// ---- showing ----------------------------------------------------------------------------------------------------

const imageOf = (name) => `/image/${encodeURIComponent(name)}`;

function setImage(image, name) {
  if (image.dataset.name === name) return;
  image.dataset.name = name;
  image.alt = name;
  image.src = imageOf(name);
}

function show() {
  const rated = ratings(), shown = items.filter((item) => passes(item, rated));
  showProgress(rated);
  showStatus();
  const nothing = pairing ? pair !== null && !pair.length : current === null;
  $("single").hidden = pairing || nothing;
  $("pairs").hidden = !pairing || !pair?.length;
  $("ratings").hidden = pairing;
  $("winners").hidden = !pairing;
  $("mode").textContent = pairing ? "singles" : "pairs";
  $("empty").hidden = !nothing;
  if (nothing) $("empty").textContent = pairing ? "Every pair of these has been compared." : emptyText(rated);
  if (pairing && pair?.length) {
    setImage($("left").firstElementChild, pair[0]);
    setImage($("right").firstElementChild, pair[1]);
  } else if (!pairing && current !== null) showOne(rated, shown);
  if (!$("details").hidden) showDetails();
}

const emptyText = (rated) => (items.every((item) => rated.has(item.name)) ? "All are rated."
  : "Nothing is left that passes these filters.");

function showOne(rated, shown) {
  const item = items.find((other) => other.name === current), event = rated.get(current);
  setImage($("painting"), current);
  const place = shown.findIndex((other) => other.name === current);
  $("place").textContent = place < 0 ? "" : `${place + 1} / ${shown.length}`;
  const round = roundOf(item);
  const parts = [item.generator_model, round && `round ${round}`, strengthText(current)];
  $("about").textContent = [item.name, ...parts].filter(Boolean).join(" · ");
  const pending = event && queue.some((other) => other.id === event.id);
  $("rating").textContent = event ? event.rating + (pending ? " …" : " ✓") : "";
  $("rating").dataset.rating = event?.rating ?? "";
  $("rating").classList.toggle("pending", Boolean(pending));
  for (const button of $("ratings").children)
    button.classList.toggle("chosen", button.dataset.rating === event?.rating);
  const next = neighbour(1);
  if (next !== null) new Image().src = imageOf(next);
}

function strengthText(name) {
  const one = strengths[name];
  return one ? `strength ${one.beta > 0 ? "+" : ""}${one.beta.toFixed(1)} ± ${one.deviation.toFixed(1)}` : "";
}

function showProgress(rated) {
  const counts = Object.fromEntries(RATINGS.map((rating) => [rating, 0]));
  let total = 0;
  for (const item of items) {
    const rating = rated.get(item.name)?.rating;
    if (rating) { counts[rating] += 1; total += 1; }
  }
  const compared = history.filter((event) => event.kind === "pair").length;
  $("count").textContent = pairing ? `${compared} pairs compared` : `${total} of ${items.length} rated`;
  $("bar").replaceChildren(...RATINGS.map((rating) => {
    const part = document.createElement("i");
    part.style.width = `${(100 * counts[rating]) / Math.max(1, items.length)}%`;
    part.style.background = `var(--${rating})`;
    return part;
  }));
  for (const button of $("ratings").children)
    button.querySelector("b").textContent = counts[button.dataset.rating] || "";
  $("undo").disabled = !history.length;
}

function showStatus() {
  const waiting = queue.length, status = $("status");
  status.dataset.state = trouble ? "waiting" : waiting ? "saving" : "saved";
  status.textContent = trouble ? (waiting ? `${waiting} not saved yet: ` : "") + trouble
    : waiting ? "saving" : "all saved";
  status.title = status.textContent;
}

async function showDetails() {
  const names = pairing ? pair ?? [] : current === null ? [] : [current];
  const list = $("details").querySelector("dl"), source = $("details").querySelector("pre");
  const key = names.join(" ");
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren();
  source.textContent = "";
  for (const name of names) {
    const item = items.find((other) => other.name === name);
    for (const [label, value] of Object.entries(item)) {
      if (label === "source") continue;
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = label.replace("reference_photo_", "photo_").replaceAll("_", " ");
      text.textContent = label === "paint_coverage" ? Number(value).toFixed(3) : String(value);
      list.append(term, text);
    }
    if (!item.source || names.length > 1) continue;
    const answer = await fetch(`/source/${encodeURIComponent(name)}`).catch(() => null);
    if (answer?.ok && list.dataset.key === key) source.textContent = await answer.text();
  }
}

function fillFilter(select, label, values) {
  const counts = new Map();
  for (const value of values) if (value !== "") counts.set(value, (counts.get(value) ?? 0) + 1);
  select.replaceChildren(new Option(label, ""), ...[...counts].map(([value, count]) => new Option(`${value} (${count})`, value)));
  select.hidden = counts.size < 2;
}

function startFilters() {
  $("filter-rating").replaceChildren(new Option("all ratings", ""), new Option("unrated", "unrated"),
    ...RATINGS.map((rating) => new Option(rating, rating)));
  fillFilter($("filter-model"), "all models", items.map((item) => item.generator_model ?? ""));
  fillFilter($("filter-round"), "all rounds", items.map(roundOf).sort((one, other) => one - other));
  $("filter-rating").value = ratings().size < items.length ? "unrated" : "";
}

function filtered() {
  const rated = ratings(), item = items.find((other) => other.name === current);
  if (!item || !passes(item, rated)) current = items.find((other) => passes(other, rated))?.name ?? null;
  if (pairing) nextPair();
  show();
}

// ---- keys -------------------------------------------------------------------------------------------------------

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLSelectElement) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const doing = pairing
    ? { ArrowLeft: () => choose("left"), ArrowRight: () => choose("right"), "=": () => choose("equal"),
        ArrowDown: () => choose("equal") }[key]
    : KEYS[key] ? () => rate(KEYS[key]) : { ArrowLeft: () => move(-1), ArrowRight: () => move(1) }[key];
  const action = doing ?? { u: undo, Backspace: undo, i: toggleDetails, p: toggleMode, Escape: closeDetails }[key];
  if (!action || event.repeat) return;
  event.preventDefault();
  action();
}

function toggleMode() {
  setMode(!pairing);
  if (pairing) {
    if ($("filter-rating").value === "unrated") $("filter-rating").value = "";
    nextPair();
  } else filtered();
  show();
}

function toggleDetails() {
  $("details").hidden = !$("details").hidden;
  $("details").querySelector("dl").dataset.key = "\n";
  show();
}

function closeDetails() {
  $("details").hidden = true;
}

async function start() {
  for (;;) {
    try {
      await refresh();
      break;
    } catch {
      await pause(700);
    }
  }
  queue = JSON.parse(localStorage.getItem(`queue ${folder}`) ?? "[]");
  queue.forEach(apply);
  startFilters();
  filtered();
  addEventListener("keydown", pressed);
  for (const button of $("ratings").children) button.addEventListener("click", () => rate(button.dataset.rating));
  for (const button of $("winners").children) button.addEventListener("click", () => choose(button.dataset.winner));
  for (const side of ["left", "right"]) $(side).addEventListener("click", () => choose(side));
  for (const id of ["filter-rating", "filter-model", "filter-round"])
    $(id).addEventListener("change", (event) => { event.target.blur(); filtered(); });
  $("previous").addEventListener("click", () => move(-1));
  $("next").addEventListener("click", () => move(1));
  $("undo").addEventListener("click", undo);
  $("info").addEventListener("click", toggleDetails);
  $("mode").addEventListener("click", toggleMode);
  document.body.dataset.ready = "yes";
  send();
}

start();
