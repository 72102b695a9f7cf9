// One exchange in three columns.

import { json } from "./api.js";
import { block, bytes, clock, copyButton, download, duration, either, el, fold, shown } from "./dom.js";
import { GLYPHS, WORDS, calls, legend, lint, problems, reply, segments } from "./parts.js";
import { conversation } from "./talk.js";

const CONTEXT_CUT =
  "The backend counted far fewer tokens than this prompt must have: it has cut the prompt to its context, perhaps the " +
  "tools with it. The proxy's log names the setting to change.";

export function detail(exchange) {
  const line = exchange.summary;
  const gone = exchange.asked === undefined;
  const turns = gone ? [] : exchange.turns;
  const found = turns.flatMap((turn, at) => turn.problems.map((each) => ({ ...each, at })));
  const where = ({ at, verdict }) => {
    if (turns.length < 2) return null;
    const again = verdict === "refused" && at + 1 < turns.length;
    return { place: `request ${at + 1}`, done: again ? "The model was told what was wrong, and asked again." : undefined };
  };
  return [
    head(exchange, line),
    line.warning === "context-cut" ? el("p", { class: "wrong" }, CONTEXT_CUT) : null,
    gone ? el("p", { class: "empty" }, "What was said in it is no longer kept: newer exchanges needed the room.") : null,
    found.length ? el("section", { class: "happened", "aria-label": "What happened" }, el("h3", {}, "What was repaired, refused or left out"), problems(found, where)) : null,
    gone ? null : el("div", { class: "columns" }, asked(exchange), model(exchange), told(exchange)),
  ];
}

function head(exchange, line) {
  const facts = [
    ["model", line.model],
    ["client", line.client],
    ["backend", line.backend],
    ["mode", line.mode],
    ["dialect", line.dialect],
    ["status", line.status],
    ["first token", duration(line.first_ms)],
    ["queued", duration(line.queue_ms)],
    ["added by the proxy", duration(line.added_ms)],
    ["took", duration(line.ms)],
    ["prompt tokens", line.prompt_tokens],
    ["reply tokens", line.completion_tokens === undefined ? undefined : `${line.completion_tokens}${line.estimated ? " (estimated)" : ""}`],
    ["asked again", line.reasks],
    ["rescued", line.rescued],
    ["warning", line.warning],
    ["error", line.error],
    ["fault of the", line.fault],
  ].filter(([, value]) => value !== undefined && value !== null && value !== "");
  return el(
    "header",
    { class: "head" },
    el(
      "h2",
      { tabindex: "-1" },
      el("span", { class: `verdict ${line.verdict}` }, `${GLYPHS[line.verdict]} ${WORDS[line.verdict]}`),
      el("span", {}, `${exchange.method} `, shown(line.path)),
      el("span", { class: "quiet" }, `${clock(line.began)} · `, shown(line.id)),
    ),
    el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, shown(value))))),
  );
}

function column(title, hint, ...children) {
  return el("section", { class: "column" }, el("h3", {}, title, el("span", { class: "quiet" }, hint)), children);
}

function body(given, label) {
  const told = given.size ? `${bytes(given.size)}${given.cut ? ", not all of it is kept or shown" : ""}` : "empty";
  const turns = conversation(given.text);
  const raw = () => (given.text ? block(given.text) : el("p", { class: "quiet" }, "Nothing."));
  const views = turns ? either(label, [["conversation", () => turns.map(speech)], ["whole", raw]]) : [raw()];
  return [el("p", { class: "quiet size" }, told), ...views];
}

function speech(turn) {
  return el(
    "div",
    { class: `speech ${["system", "developer", "user", "assistant", "tool"].includes(turn.role) ? turn.role : "other"}` },
    el("p", { class: "role" }, shown(turn.role)),
    turn.parts.map((part) =>
      part.kind === "text"
        ? block(part.text)
        : el("div", { class: `part ${part.kind}` }, el("p", { class: "name" }, part.kind, part.name ? el("code", {}, shown(part.name)) : null), block(part.text)),
    ),
    turn.parts.length ? null : el("p", { class: "quiet" }, "empty"),
  );
}

function asked(exchange) {
  const { asked, tools } = exchange;
  return column(
    "The client sent",
    "",
    el("p", { class: "buttons" }, copyButton("copy as curl", asked.curl, "with $TOOLGRAFT_KEY for the key")),
    asked.problem ? el("p", { class: "wrong" }, shown(asked.problem)) : null,
    body(asked, "The request"),
    tools.length ? fold(`${tools.length} ${tools.length === 1 ? "tool" : "tools"} offered`, false, block(JSON.stringify(tools, null, 2))) : null,
    lint(exchange.lint, tools.length),
    fold("Headers", false, block(exchange.headers.map(([name, value]) => `${name}: ${value}`).join("\n"))),
  );
}

function model(exchange) {
  const number = exchange.summary.number;
  return column(
    "The model was sent, and wrote",
    "",
    exchange.turns.length ? null : el("p", { class: "quiet" }, "No backend was asked."),
    exchange.turns.map((turn, at) => oneTurn(turn, at, number, exchange.turns.length)),
  );
}

function oneTurn(turn, at, number, total) {
  const fixture = el("button", { type: "button", title: "what the model wrote, with what was read out of it, for pytest to replay" }, "download as fixture");
  fixture.addEventListener("click", async () => {
    const made = await json(`/exchanges/${number}/fixture/${at}`);
    download(`exchange-${number}-${at + 1}.toolgraft.json`, `${JSON.stringify(made, null, 2)}\n`);
  });
  fixture.disabled = !turn.segments.length;
  return el(
    "div",
    { class: "turn" },
    total > 1 ? el("h4", {}, `Request ${at + 1} of ${total}`) : null,
    el("p", { class: "quiet size" }, `status ${turn.status ?? "none"} · `, el("code", {}, shown(turn.url))),
    el("p", { class: "buttons" }, copyButton("copy as curl", turn.curl, "with $BACKEND_KEY for the key"), fixture),
    turn.error ? el("p", { class: "wrong" }, shown(turn.error)) : null,
    fold(`Sent · ${bytes(turn.sent.size)}`, false, body(turn.sent, "What the model was sent")),
    el("h4", {}, "Wrote"),
    turn.segments.some((each) => each.kind !== "text" || each.problems.length) ? legend() : null,
    turn.reasoning ? fold("Reasoning, told apart by the backend", false, block(turn.reasoning, "reasoning")) : null,
    turn.segments.length || !turn.calls.length ? segments(turn.segments) : null,
    turn.calls.length ? [el("p", { class: "quiet" }, "Calls that the backend read itself:"), calls(turn.calls)] : null,
    turn.came.text ? fold(`As it came · ${bytes(turn.came.size)}`, false, block(turn.came.text)) : null,
  );
}

function told(exchange) {
  const { told, summary } = exchange;
  const raw = () => (told.text ? block(told.text) : el("p", { class: "quiet" }, summary.running ? "Nothing yet." : "Nothing."));
  const size = told.size ? `${bytes(told.size)}${told.cut ? ", not all of it is kept or shown" : ""}` : "";
  const views = told.reply ? either("The answer", [["answer", () => reply(told.reply).filter(Boolean)], ["whole", raw]]) : [raw()];
  return column("The client got", summary.status ? ` status ${summary.status}` : "", el("p", { class: "quiet size" }, size), ...views);
}
