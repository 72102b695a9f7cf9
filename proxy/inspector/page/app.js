// The page: which view is shown, the list of exchanges as it changes, and the one that was chosen.

import { follow, json, useKey } from "./api.js";
import { charts } from "./charts.js";
import { detail } from "./detail.js";
import { clock, duration, el, shown } from "./dom.js";
import { models } from "./models.js";
import { GLYPHS, WORDS } from "./parts.js";
import { setUp } from "./try.js";

const VIEWS = ["exchanges", "charts", "models", "try"];
const MOST_ROWS = 500;
const STATES = { live: "live", waiting: "reconnecting", locked: "locked" };
const byId = (name) => document.getElementById(name);

const exchanges = new Map();
const rows = new Map();
let chosen = null;
let view = "exchanges";

// ---- views

function route() {
  const [, name = "", number = ""] = location.hash.split("/");
  view = VIEWS.includes(name) ? name : "exchanges";
  for (const each of VIEWS) byId(each).hidden = each !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (view === "charts") draw();
  if (view === "models") models().then((made) => byId("models").replaceChildren(...made));
  if (name === "exchange" && number) choose(Number(number), false);
}

function draw() {
  const focused = document.activeElement?.dataset.dot;
  byId("charts").replaceChildren(...charts([...exchanges.values()], (number) => (location.hash = `#/exchange/${number}`)));
  if (focused) byId("charts").querySelector(`[data-dot="${focused}"]`)?.focus();
}

// ---- the list

function take(kind, news) {
  if (kind === "all") {
    exchanges.clear();
    rows.clear();
    byId("rows").replaceChildren();
  }
  for (const each of news) exchanges.set(each.number, each);
  for (const number of [...exchanges.keys()].slice(0, Math.max(0, exchanges.size - MOST_ROWS))) forget(number);
  for (const each of news) if (exchanges.has(each.number)) put(each);
  sift();
  if (view === "charts") draw();
  if (chosen !== null && news.some((each) => each.number === chosen)) show(chosen);
  else if (kind === "all") route();
}

function forget(number) {
  exchanges.delete(number);
  rows.get(number)?.remove();
  rows.delete(number);
}

function put(each) {
  const row = line(each);
  const before = rows.get(each.number);
  const focused = before !== undefined && before === document.activeElement;
  if (before) before.replaceWith(row);
  else byId("rows").prepend(row);
  rows.set(each.number, row);
  if (focused) row.focus();
}

function line(each) {
  const number = (text) => el("td", { class: "number" }, text ?? "");
  const { right, repaired, refused } = each.calls;
  const counts = [["right", right], ["repaired", repaired], ["refused", refused]].filter(([, count]) => count);
  const tokens = each.completion_tokens === undefined ? "" : `${each.prompt_tokens ?? "?"} → ${each.completion_tokens}`;
  return el(
    "tr",
    {
      tabindex: each.number === chosen ? "0" : "-1",
      "aria-selected": each.number === chosen ? "true" : "false",
      "data-number": each.number,
      on: { click: () => (location.hash = `#/exchange/${each.number}`) },
    },
    el("td", {}, clock(each.began)),
    el("td", {}, el("span", { class: `verdict ${each.verdict}` }, `${GLYPHS[each.verdict]} ${WORDS[each.verdict]}`), each.error ? el("code", { class: "quiet" }, shown(each.error)) : null),
    el("td", { class: "model" }, shown(each.model ?? "")),
    el("td", {}, each.surface),
    el("td", {}, each.mode ?? ""),
    el("td", { class: "number calls" }, counts.map(([kind, count]) => el("span", { class: `verdict ${kind}`, title: `${count} ${kind}` }, `${count} ${GLYPHS[kind]}`))),
    number(duration(each.first_ms)),
    number(each.rate === null ? "" : String(each.rate)),
    el("td", { class: "number spare" }, tokens),
    number(each.running ? "…" : duration(each.ms)),
  );
}

function sift() {
  const wanted = byId("filter").value.trim().toLowerCase();
  const only = byId("only").value;
  let count = 0;
  let first = null;
  for (const [number, row] of rows) {
    const each = exchanges.get(number);
    const words = [each.model, each.path, each.client, each.id, each.surface, each.mode, each.error, each.dialect].join(" ").toLowerCase();
    row.hidden = !words.includes(wanted) || (only !== "" && each.verdict !== only);
    if (!row.hidden) {
      count += 1;
      first = row;
    }
  }
  const selected = rows.get(chosen);
  if (first && (!selected || selected.hidden)) first.tabIndex = 0;
  const all = exchanges.size === 1 ? "1 exchange" : `${exchanges.size} exchanges`;
  byId("count").textContent = count === exchanges.size ? all : `${count} of ${all}`;
  byId("empty").hidden = exchanges.size > 0;
}

// ---- the one that was chosen

function choose(number, focus) {
  if (!rows.has(number)) return;
  const before = rows.get(chosen);
  before?.setAttribute("aria-selected", "false");
  if (before) before.tabIndex = -1;
  chosen = number;
  const row = rows.get(number);
  row.setAttribute("aria-selected", "true");
  row.tabIndex = 0;
  row.scrollIntoView({ block: "nearest" });
  if (focus) row.focus();
  show(number);
}

async function show(number) {
  const place = byId("detail");
  let shownNow;
  try {
    shownNow = detail(await json(`/exchanges/${number}`)).filter(Boolean);
  } catch (error) {
    shownNow = [el("p", { class: "wrong" }, shown(error.message))];
  }
  if (number !== chosen) return;
  place.replaceChildren(...shownNow);
  place.dataset.number = number;
  place.hidden = false;
}

function step(by) {
  const visible = [...byId("rows").children].filter((row) => !row.hidden);
  const at = visible.findIndex((row) => Number(row.dataset.number) === chosen);
  const next = visible[at < 0 ? 0 : Math.min(visible.length - 1, Math.max(0, at + by))];
  if (!next) return;
  choose(Number(next.dataset.number), true);
  history.replaceState(null, "", `#/exchange/${chosen}`);
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, dialog, pre");
  if (view !== "exchanges" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/" && !typing) {
    event.preventDefault();
    byId("filter").focus();
  } else if (event.key === "Escape" && event.target === byId("filter")) {
    byId("filter").value = "";
    sift();
  } else if (!typing && (event.key === "ArrowDown" || event.key === "j")) {
    event.preventDefault();
    step(1);
  } else if (!typing && (event.key === "ArrowUp" || event.key === "k")) {
    event.preventDefault();
    step(-1);
  } else if (event.key === "Enter" && event.target.closest("tr")) {
    choose(Number(event.target.closest("tr").dataset.number), false);
  }
});

// ---- the key, and the beginning

function wantKey() {
  const dialog = byId("key");
  byId("key-input").value = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        useKey(byId("key-input").value);
        resolve();
      },
      { once: true },
    );
  });
}

function tell(state, message = "") {
  const place = byId("state");
  place.dataset.state = state;
  place.textContent = message || STATES[state];
}

for (const [name, event] of [["filter", "input"], ["only", "change"]]) byId(name).addEventListener(event, sift);
document.querySelector("form.bar").addEventListener("submit", (event) => event.preventDefault());
window.addEventListener("hashchange", route);
setInterval(() => {
  if (view === "exchanges" && exchanges.get(chosen)?.running) show(chosen);
}, 1000);
setUp();
route();
follow(take, tell, wantKey);
