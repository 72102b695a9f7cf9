// A text to try: what the reader makes of it.

import { json } from "./api.js";
import { block, download, el, shown } from "./dom.js";
import { legend, lint, problems, reply, segments } from "./parts.js";

const TEXT = '<think>They want Oslo.</think>\nLet me look.\n<tool_call>\n{"name": "Get-Weather", "arguments": {"city": "Oslo", "days": "3",}}\n</tool_call>';
const TOOLS = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather of the next days in a city.",
      parameters: {
        type: "object",
        properties: {
          city: { type: "string", description: "The city's name, such as Oslo." },
          days: { type: "integer", description: "How many days, 1 to 7." },
          unit: { type: "string", description: "'celsius' or 'fahrenheit'" },
        },
        required: ["city"],
      },
    },
  },
];

const byId = (name) => document.getElementById(name);

export function setUp() {
  byId("trial-text").value = TEXT;
  byId("trial-tools").value = JSON.stringify(TOOLS, null, 2);
  byId("trial").addEventListener("submit", (event) => {
    event.preventDefault();
    read();
  });
}

async function read() {
  const place = byId("trial-result");
  try {
    const tools = byId("trial-tools").value.trim();
    const sent = {
      text: byId("trial-text").value,
      tools: tools ? JSON.parse(tools) : [],
      dialect: byId("trial-dialect").value.trim() || "auto",
      model: byId("trial-model").value.trim(),
      finish_reason: byId("trial-finish").value,
      starts_in_reasoning: byId("trial-reasoning").checked,
    };
    const told = await json("/parse", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(sent) });
    place.replaceChildren(...result(told));
  } catch (error) {
    const message = error instanceof SyntaxError ? `The tools are not JSON: ${error.message}` : error.message;
    place.replaceChildren(el("p", { class: "wrong", role: "alert" }, shown(message)));
  }
}

function result(told) {
  const fixture = el("button", { type: "button" }, "download as fixture");
  fixture.addEventListener("click", () => download("reply.toolgraft.json", `${JSON.stringify(told.fixture, null, 2)}\n`));
  return [
    el(
      "div",
      { class: "columns two" },
      el("section", { class: "column" }, el("h3", {}, "The text, with what was read out of it"), legend(), segments(told.segments), el("p", { class: "buttons" }, fixture)),
      el("section", { class: "column" }, el("h3", {}, "What a client gets"), reply(told.reply).filter(Boolean)),
    ),
    told.problems.length ? el("section", { class: "happened" }, el("h3", {}, "What was repaired, refused or left out"), problems(told.problems)) : el("p", { class: "quiet" }, "Nothing had to be mended."),
    lint(told.lint, told.fixture.tools.length),
  ].filter(Boolean);
}
