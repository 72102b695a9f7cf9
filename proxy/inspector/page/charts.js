// How it went over time: three charts, drawn as SVG.

import { clock, el, svg } from "./dom.js";

const WIDTH = 960;
const HEIGHT = 180;
const LEFT = 64;
const BOTTOM = 24;
const TOP = 10;
const MOST_BARS = 80;

export function charts(exchanges, choose) {
  const done = exchanges.filter((each) => !each.running).sort((a, b) => a.began - b.began);
  if (!done.length) return [el("p", { class: "empty" }, "Nothing to draw yet.")];
  return [
    el("p", { class: "quiet" }, `The last ${done.length} exchanges, oldest at the left. A dot leads to its exchange; the arrow keys go from dot to dot.`),
    dots("Time to first token", "milliseconds", done, (each) => each.first_ms, choose),
    dots("Tokens per second", "tokens/s", done, (each) => each.rate, choose),
    bars(done),
  ];
}

function figure(title, summary, legend, drawing) {
  return el("figure", {}, el("figcaption", {}, el("strong", {}, title), el("span", { class: "quiet" }, summary), legend), drawing);
}

function frame(top, role, from, to, label) {
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role, "aria-label": label });
  for (const share of [0, 0.5, 1]) {
    const y = HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP);
    root.append(svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y, y2: y }), svg("text", { class: "axis", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, short(top * share)));
  }
  root.append(svg("text", { class: "axis", x: LEFT, y: HEIGHT - 6 }, clock(from)), svg("text", { class: "axis", x: WIDTH, y: HEIGHT - 6, "text-anchor": "end" }, clock(to)));
  return root;
}

function dots(title, unit, done, value, choose) {
  const points = done.map((each) => [each, value(each)]).filter(([, each]) => each !== null && each !== undefined);
  if (!points.length) return figure(title, " no data yet", null, el("p", { class: "empty" }, "–"));
  const sorted = points.map(([, each]) => each).sort((a, b) => a - b);
  const median = sorted[Math.floor((sorted.length - 1) / 2)];
  const top = nice(sorted[Math.ceil((sorted.length - 1) * 0.98)]);
  const x = (at) => LEFT + 8 + ((WIDTH - LEFT - 16) * (at + 0.5)) / points.length;
  const y = (each) => HEIGHT - BOTTOM - (Math.min(each, top) / top) * (HEIGHT - BOTTOM - TOP);
  const summary = ` median ${short(median)} · worst ${short(unit === "milliseconds" ? sorted.at(-1) : sorted[0])} ${unit}`;
  const root = frame(top, "group", points[0][0].began, points.at(-1)[0].began, `${title}:${summary}`);
  root.append(svg("line", { class: "median", x1: LEFT, x2: WIDTH, y1: y(median), y2: y(median) }));
  if (points.length > 1) root.append(svg("polyline", { class: "trend", points: running(points).map((each, at) => `${x(at)},${y(each)}`).join(" ") }));
  const marks = points.map(([each, told], at) => {
    const label = `${clock(each.began)}  ${short(told)} ${unit}  ${each.model ?? ""}`;
    const place = { cx: x(at), cy: y(told), r: points.length > 120 ? 2.5 : 4 };
    const named = { role: "link", tabindex: "-1", "aria-label": label, "data-dot": `${title} ${each.number}` };
    return svg("circle", { class: `dot ${each.verdict}`, ...place, ...named }, svg("title", {}, label));
  });
  marks.at(-1).setAttribute("tabindex", "0");
  root.append(...marks);
  lead(root, marks, (at) => choose(points[at][0].number));
  return figure(title, summary, null, root);
}

// One stop for the tab key; from there the arrow keys go from mark to mark.
function lead(root, marks, choose) {
  root.addEventListener("focusin", (event) => {
    for (const mark of marks) mark.setAttribute("tabindex", mark === event.target ? "0" : "-1");
  });
  root.addEventListener("click", (event) => {
    if (event.target.matches(".dot")) choose(marks.indexOf(event.target));
  });
  root.addEventListener("keydown", (event) => {
    const at = marks.indexOf(event.target);
    const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: marks.length - 1 }[event.key];
    if (to === undefined && event.key !== "Enter") return;
    event.preventDefault();
    if (event.key === "Enter") choose(at);
    else marks[to]?.focus();
  });
}

// The median of each point and the eight before it.
function running(points) {
  return points.map((_, at) => {
    const near = points.slice(Math.max(0, at - 8), at + 1).map(([, each]) => each).sort((a, b) => a - b);
    return near[Math.floor((near.length - 1) / 2)];
  });
}

function bars(done) {
  const kinds = ["right", "repaired", "refused"];
  const each = Math.ceil(done.length / MOST_BARS);
  const groups = [];
  for (let at = 0; at < done.length; at += each) groups.push(done.slice(at, at + each));
  const sums = groups.map((group) => kinds.map((kind) => group.reduce((sum, one) => sum + one.calls[kind], 0)));
  const totals = kinds.map((_, at) => sums.reduce((sum, one) => sum + one[at], 0));
  const top = nice(Math.max(1, ...sums.map((one) => one.reduce((a, b) => a + b, 0))));
  const summary = ` ${totals[0]} right · ${totals[1]} repaired · ${totals[2]} refused or wrong`;
  const root = frame(top, "img", done[0].began, done.at(-1).began, `Calls:${summary}`);
  const slot = (WIDTH - LEFT - 16) / groups.length;
  const width = Math.min(slot * 0.8, 36);
  sums.forEach((counts, at) => {
    let y = HEIGHT - BOTTOM;
    counts.forEach((count, kind) => {
      if (!count) return;
      const height = (count / top) * (HEIGHT - BOTTOM - TOP);
      y -= height;
      const bar = svg("rect", { class: `bar ${kinds[kind]}`, x: LEFT + 8 + slot * at + (slot - width) / 2, y, width, height });
      bar.append(svg("title", {}, `${clock(groups[at][0].began)}  ${count} ${kinds[kind]}`));
      root.append(bar);
    });
  });
  const legend = el("span", { class: "legend" }, kinds.map((kind) => el("span", { class: `swatch ${kind}` }, kind === "refused" ? "refused or wrong" : kind)));
  return figure("Calls", summary, legend, root);
}

function nice(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function short(value) {
  if (value >= 10_000) return `${Math.round(value / 1000)}k`;
  return value >= 100 || Number.isInteger(value) ? String(Math.round(value)) : value.toPrecision(2);
}
