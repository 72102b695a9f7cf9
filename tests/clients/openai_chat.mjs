// Plays every scenario with the Chat Completions of openai (Node), whole and streamed: node openai_chat.mjs URL
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none", maxRetries: 0 });

const text = { type: "string" };
const object = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const tool = (name, parameters) => ({ type: "function", function: { name, parameters: object(parameters) } });
const tools = [tool("get_weather", { city: text }), tool("get_time", {}), tool("write_file", { path: text, text })];

const asked = (messages, more) => ({ model: "scripted", tools, messages, ...more });
const whole = (messages, more = {}) => client.chat.completions.create(asked(messages, more));
const streamed = (messages, more = {}) => {
  const told = { ...asked(messages, more), stream_options: { include_usage: true } };
  return client.chat.completions.stream(told).finalChatCompletion();
};

const user = (content) => ({ role: "user", content });
const message = (completion) => completion.choices[0].message;
const calls = (completion) => message(completion).tool_calls ?? [];
const made = (completion) => calls(completion).map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
const results = (completion, content) =>
  calls(completion).map((call) => ({ role: "tool", tool_call_id: call.id, content }));

const OSLO = ["get_weather", { city: "Oslo" }];
const ROME = ["get_weather", { city: "Rome" }];

const scenarios = {
  single: async (send, first) => {
    const completion = await send([first]);
    assert.deepEqual(made(completion), [OSLO]);
    assert.equal(message(completion).content.trim(), "Let me look.");
    assert.equal(completion.choices[0].finish_reason, "tool_calls");
    assert.equal(completion.usage.completion_tokens, 30);
  },
  parallel: async (send, first) => {
    const completion = await send([first]);
    assert.deepEqual(made(completion), [OSLO, ROME]);
    assert.notEqual(calls(completion)[0].id, calls(completion)[1].id);
  },
  steps: async (send, first) => {
    const one = await send([first]);
    const turns = [first, message(one), ...results(one, "rain")];
    const two = await send(turns);
    assert.deepEqual(made(two), [["get_time", {}]]);
    const three = await send([...turns, message(two), ...results(two, "9:00")]);
    assert.equal(message(three).content, "Take a coat.");
    assert.equal(three.choices[0].finish_reason, "stop");
  },
  "no-arguments": async (send, first) => assert.deepEqual(made(await send([first])), [["get_time", {}]]),
  "tool-error": async (send, first) => {
    const one = await send([first]);
    const two = await send([first, message(one), ...results(one, "Error: no network")]);
    assert.equal(message(two).content, "I could not look.");
  },
  thinking: async (send, first) => {
    const completion = await send([first]);
    assert.equal(message(completion).reasoning_content, "They greet.");
    assert.equal(message(completion).content, "Hello.");
  },
  markup: async (send, first) => {
    const input = { path: "a.md", text: 'Say </tool_call> or "</tool_call>".\n' };
    assert.deepEqual(made(await send([first])), [["write_file", input]]);
  },
  forced: async (send, first) => {
    for (const choice of ["required", { type: "function", function: { name: "get_weather" } }])
      assert.deepEqual(made(await send([first], { tool_choice: choice })), [OSLO]);
  },
  "one-only": async (send, first) =>
    assert.deepEqual(made(await send([first], { parallel_tool_calls: false })), [OSLO]),
  cut: async (send, first) => {
    const completion = await send([first]);
    assert.equal(completion.choices[0].finish_reason, "length");
    assert.equal(calls(completion)[0].function.arguments, '{"city": "Oslo"}');
  },
  breaks: async (send, first) => assert.rejects(send([first]), OpenAI.OpenAIError),
};

for (const [name, play] of Object.entries(scenarios)) {
  for (const send of [whole, streamed]) await play(send, user(`scenario: ${name}.`));
  console.log(`ok ${name}`);
}
