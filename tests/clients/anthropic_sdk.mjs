// Plays every scenario with @anthropic-ai/sdk, whole and streamed: node anthropic_sdk.mjs URL
import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: process.argv[2], apiKey: "none", maxRetries: 0 });

const object = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const text = { type: "string" };
const tools = [
  { name: "get_weather", description: "The weather in a city.", input_schema: object({ city: text }) },
  { name: "get_time", description: "The time.", input_schema: object({}) },
  { name: "write_file", description: "Writes a file.", input_schema: object({ path: text, text: text }) },
];

const asked = (messages, more) => ({ model: "scripted", max_tokens: 500, tools, messages, ...more });
const whole = (messages, more = {}) => client.messages.create(asked(messages, more));
const streamed = (messages, more = {}) => client.messages.stream(asked(messages, more)).finalMessage();

const user = (content) => ({ role: "user", content });
const assistant = (message) => ({ role: "assistant", content: message.content });
const calls = (message) => message.content.filter((block) => block.type === "tool_use");
const made = (message) => calls(message).map((call) => [call.name, call.input]);
const said = (message) =>
  message.content
    .filter((block) => block.type === "text")
    .map((block) => block.text)
    .join("");
const results = (message, content, more = {}) =>
  user(calls(message).map((call) => ({ type: "tool_result", tool_use_id: call.id, content, ...more })));

const OSLO = ["get_weather", { city: "Oslo" }];
const ROME = ["get_weather", { city: "Rome" }];

const scenarios = {
  single: async (send, first) => {
    const message = await send([first]);
    assert.deepEqual(made(message), [OSLO]);
    assert.equal(said(message).trim(), "Let me look.");
    assert.equal(message.stop_reason, "tool_use");
    assert.equal(message.usage.output_tokens, 30);
  },
  parallel: async (send, first) => {
    const message = await send([first]);
    assert.deepEqual(made(message), [OSLO, ROME]);
    assert.notEqual(calls(message)[0].id, calls(message)[1].id);
  },
  steps: async (send, first) => {
    const one = await send([first]);
    const turns = [first, assistant(one), results(one, "rain")];
    const two = await send(turns);
    assert.deepEqual(made(two), [["get_time", {}]]);
    const three = await send([...turns, assistant(two), results(two, "9:00")]);
    assert.deepEqual([said(three), three.stop_reason], ["Take a coat.", "end_turn"]);
  },
  "no-arguments": async (send, first) => assert.deepEqual(made(await send([first])), [["get_time", {}]]),
  "tool-error": async (send, first) => {
    const one = await send([first]);
    const two = await send([first, assistant(one), results(one, "no network", { is_error: true })]);
    assert.equal(said(two), "I could not look.");
  },
  thinking: async (send, first) => {
    const message = await send([first], { thinking: { type: "enabled", budget_tokens: 1024 }, max_tokens: 2000 });
    assert.deepEqual(
      message.content.map((block) => block.type),
      ["thinking", "text"],
    );
    assert.equal(message.content[0].thinking, "They greet.");
    assert.ok(message.content[0].signature);
  },
  markup: async (send, first) => {
    const input = { path: "a.md", text: 'Say </tool_call> or "</tool_call>".\n' };
    assert.deepEqual(made(await send([first])), [["write_file", input]]);
  },
  forced: async (send, first) => {
    for (const choice of [{ type: "any" }, { type: "tool", name: "get_weather" }])
      assert.deepEqual(made(await send([first], { tool_choice: choice })), [OSLO]);
  },
  "one-only": async (send, first) => {
    const choice = { type: "auto", disable_parallel_tool_use: true };
    assert.deepEqual(made(await send([first], { tool_choice: choice })), [OSLO]);
  },
  cut: async (send, first) => {
    const message = await send([first]);
    assert.deepEqual([made(message), message.stop_reason], [[OSLO], "max_tokens"]);
  },
  breaks: async (send, first) => assert.rejects(send([first]), Anthropic.APIError),
};

for (const [name, play] of Object.entries(scenarios)) {
  for (const send of [whole, streamed]) await play(send, user(`scenario: ${name}.`));
  console.log(`ok ${name}`);
}
const models = await client.models.list();
assert.deepEqual(
  models.data.map((model) => model.id),
  ["scripted"],
);
assert.ok((await client.messages.countTokens({ model: "scripted", messages: [user("hi")] })).input_tokens > 0);
