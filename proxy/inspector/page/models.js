// The models that can be asked for, and what is known of each.

import { json } from "./api.js";
import { el, shown } from "./dom.js";

const COLUMNS = [
  ["model", (each) => each.id],
  ["backend", (each) => each.toolgraft?.backend],
  ["mode", (each) => each.toolgraft?.mode ?? "not known yet"],
  ["because of", (each) => each.toolgraft?.source],
  ["known for", (each) => (each.toolgraft?.age === undefined ? "" : `${each.toolgraft.age} s`)],
];

export async function models() {
  try {
    const { data } = await json("/v1/models");
    if (!data.length) return [el("p", { class: "empty" }, "The backends name no models.")];
    const row = (each) => el("tr", {}, COLUMNS.map(([, of]) => el("td", {}, shown(of(each) ?? ""))));
    return [
      el("p", { class: "quiet" }, "native: the backend calls tools by itself. xml: the tools are in the prompt, and the calls are read out of the text."),
      el("div", { class: "list short" }, el("table", {}, el("thead", {}, el("tr", {}, COLUMNS.map(([name]) => el("th", { scope: "col" }, name)))), el("tbody", {}, data.map(row)))),
    ];
  } catch (error) {
    return [el("p", { class: "wrong" }, shown(error.message))];
  }
}
