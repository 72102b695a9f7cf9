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
    el("p", { class: "quiet" }, `The last ${done.length} exchanges, oldest at the left.`),
    dots("Time to first token", "milliseconds", done, (each) => each.first_ms, choose),
    dots("Tokens per second", "tokens/s", done, (each) => each.rate, choose),
    bars(done),
  ];
}

function figure(title, summary, legend, drawing) {
  return el("figure", {}, el("figcaption", {}, el("strong", {}, title), el("span", { class: "quiet" }, summary), legend), drawing);
}

function frame(top, unit, from, to, label) {
  const root = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
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
  const root = frame(top, unit, points[0][0].began, points.at(-1)[0].began, `${title}:${summary}`);
  root.append(svg("line", { class: "median", x1: LEFT, x2: WIDTH, y1: y(median), y2: y(median) }));
  if (points.length > 1) root.append(svg("polyline", { class: "trend", points: running(points).map((each, at) => `${x(at)},${y(each)}`).join(" ") }));
  points.forEach(([each, told], at) => {
    const dot = svg("circle", { class: `dot ${each.verdict}`, cx: x(at), cy: y(told), r: points.length > 120 ? 2.5 : 4 });
    dot.append(svg("title", {}, `${clock(each.began)}  ${short(told)} ${unit}  ${each.model ?? ""}`));
    dot.addEventListener("click", () => choose(each.number));
    root.append(dot);
  });
  return figure(title, summary, null, root);
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
  const root = frame(top, "calls", done[0].began, done.at(-1).began, `Calls:${summary}`);
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
