// Pieces that an exchange and a tried text have in common.

import { block, el, fold, shown } from "./dom.js";

export const GLYPHS = { right: "●", repaired: "▲", refused: "✕", text: "–", error: "!", running: "…", note: "i" };
export const WORDS = { right: "right", repaired: "repaired", refused: "refused", text: "text", error: "error", running: "running" };

// Findings; with where they were found and what was done about it, if that has to be said.
export function problems(list, where = () => null) {
  if (!list.length) return null;
  return el("ul", { class: "problems" }, list.map((each) => problem(each, where(each))));
}

function problem(each, where) {
  return el(
    "li",
    { class: `problem ${each.verdict}` },
    el(
      "p",
      { class: "what" },
      el("span", { class: "glyph", "aria-hidden": "true" }, GLYPHS[each.verdict]),
      el("strong", {}, each.title),
      el("code", {}, each.kind),
      each.call === null ? null : el("span", { class: "quiet" }, `call ${each.call + 1}`),
      where ? el("span", { class: "quiet" }, where.place) : null,
    ),
    el("p", {}, shown(each.message)),
    each.detail ? block(each.detail, "detail") : null,
    el("p", { class: "why" }, where?.done ?? each.why, each.mend ? el("span", { class: "mend" }, ` ${each.mend}`) : null),
  );
}

export function legend() {
  const one = (kind, text) => el("span", { class: `mark ${kind}` }, text);
  return el("p", { class: "legend", "aria-label": "Legend" }, one("call right", "call"), one("call repaired", "repaired"), one("call refused", "refused"), one("reasoning", "reasoning"), one("dropped", "left out"));
}

// The model's text, with what became of each piece of it.
export function segments(list) {
  if (!list.length) return el("p", { class: "quiet" }, "Nothing.");
  return el("pre", { class: "wrote", tabindex: "0" }, list.map(segment));
}

function segment(each) {
  const verdicts = each.problems.map((problem) => problem.verdict);
  const verdict = verdicts.includes("refused") ? "refused" : verdicts.includes("repaired") ? "repaired" : "right";
  const about = each.problems.map((problem) => `${problem.title}: ${problem.message}`).join("\n");
  if (each.kind === "text" && verdict !== "refused") return el("span", { class: "mark text" }, shown(each.text));
  if (each.kind === "dropped" && !each.text.trim() && !each.problems.length) return el("span", {}, shown(each.text));
  const title = { text: "visible text", reasoning: "reasoning", dropped: "left out of the answer", call: "a call" }[each.kind];
  const kind = each.kind === "reasoning" || each.kind === "dropped" ? each.kind : `${each.kind} ${verdict}`;
  const label = each.kind === "call" ? el("span", { class: "label" }, shown(each.calls.map((call) => call.name).join(", "))) : null;
  const text = each.text === "" ? [el("span", { class: "label" }, "∅")] : shown(each.text);
  return el("mark", { class: `mark ${kind}`, title: about ? `${title}\n${about}` : title }, label, text);
}

export function calls(list) {
  return list.map((call) =>
    el("div", { class: "call" }, el("p", { class: "name" }, shown(call.name), call.id ? el("code", { class: "quiet" }, shown(call.id)) : null), block(pretty(call.arguments))),
  );
}

export function reply(given) {
  return [
    given.reasoning ? fold("Reasoning", true, block(given.reasoning, "reasoning")) : null,
    given.content ? block(given.content, "content") : null,
    ...calls(given.calls),
    el("p", { class: "quiet" }, "finish reason ", el("code", {}, given.finish ?? "none")),
  ];
}

export function lint(list, total) {
  const word = list.length === 1 ? "1 finding" : `${list.length} findings`;
  if (!total) return null;
  if (!list.length) return el("p", { class: "quiet" }, "Nothing to say about the tools.");
  return fold(
    `What could be said better in the tools: ${word}`,
    true,
    el(
      "ul",
      { class: "lint" },
      list.map((each) =>
        el("li", {}, el("p", { class: "where" }, each.tool ? el("strong", {}, shown(each.tool)) : el("strong", {}, "all tools"), each.argument ? el("code", {}, shown(each.argument)) : null, el("code", { class: "quiet" }, each.rule)), el("p", {}, shown(each.message))),
      ),
    ),
  );
}

function pretty(text) {
  // as it is if something would be lost: JavaScript has no room for long numbers
  if (/\d{16}|\d[eE.]/.test(text)) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
