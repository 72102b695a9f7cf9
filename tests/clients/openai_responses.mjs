// Plays every scenario with the Responses of openai (Node), whole and streamed: node openai_responses.mjs URL
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none", maxRetries: 0 });

const text = { type: "string" };
const object = (properties) => ({ type: "object", properties, required: Object.keys(properties) });
const tool = (name, parameters) => ({ type: "function", name, parameters: object(parameters), strict: false });
const tools = [tool("get_weather", { city: text }), tool("get_time", {}), tool("write_file", { path: text, text })];

const asked = (input, more) => ({ model: "scripted", tools, input, ...more });
const whole = (input, more = {}) => client.responses.create(asked(input, more));
const streamed = async (input, more = {}) => {
  let last;
  for await (const event of client.responses.stream(asked(input, more))) last = event;
  if (last.type === "response.failed") throw new Error(last.response.error.message);
  return last.response;
};

const user = (content) => ({ role: "user", content });
const calls = (response) => response.output.filter((item) => item.type === "function_call");
const made = (response) => calls(response).map((call) => [call.name, JSON.parse(call.arguments)]);
const said = (response) =>
  response.output.flatMap((item) => (item.type === "message" ? item.content.map((part) => part.text) : [])).join("");
const results = (response, output) =>
  calls(response).map((call) => ({ type: "function_call_output", call_id: call.call_id, output }));

const OSLO = ["get_weather", { city: "Oslo" }];
const ROME = ["get_weather", { city: "Rome" }];

const scenarios = {
  single: async (send, first) => {
    const response = await send([first]);
    assert.deepEqual(made(response), [OSLO]);
    assert.equal(said(response).trim(), "Let me look.");
    assert.equal(response.status, "completed");
    assert.equal(response.usage.output_tokens, 30);
  },
  parallel: async (send, first) => {
    const response = await send([first]);
    assert.deepEqual(made(response), [OSLO, ROME]);
    assert.notEqual(calls(response)[0].call_id, calls(response)[1].call_id);
  },
  steps: async (send, first) => {
    const one = await send([first]);
    const items = [first, ...one.output, ...results(one, "rain")];
    const two = await send(items);
    assert.deepEqual(made(two), [["get_time", {}]]);
    const three = await send([...items, ...two.output, ...results(two, "9:00")]);
    assert.deepEqual([said(three), three.status], ["Take a coat.", "completed"]);
  },
  "no-arguments": async (send, first) => assert.deepEqual(made(await send([first])), [["get_time", {}]]),
  "tool-error": async (send, first) => {
    const one = await send([first]);
    const two = await send([first, ...one.output, ...results(one, "Error: no network")]);
    assert.equal(said(two), "I could not look.");
  },
  thinking: async (send, first) => {
    const plain = await send([first]);
    assert.deepEqual(
      plain.output.map((item) => item.type),
      ["reasoning", "message"],
    );
    assert.equal(plain.output[0].content[0].text, "They greet.");
    const summarised = await send([first], { reasoning: { summary: "auto" } });
    assert.equal(summarised.output[0].summary[0].text, "They greet.");
  },
  markup: async (send, first) => {
    const input = { path: "a.md", text: 'Say </tool_call> or "</tool_call>".\n' };
    assert.deepEqual(made(await send([first])), [["write_file", input]]);
  },
  forced: async (send, first) => {
    for (const choice of ["required", { type: "function", name: "get_weather" }])
      assert.deepEqual(made(await send([first], { tool_choice: choice })), [OSLO]);
  },
  "one-only": async (send, first) =>
    assert.deepEqual(made(await send([first], { parallel_tool_calls: false })), [OSLO]),
  cut: async (send, first) => {
    const response = await send([first]);
    assert.deepEqual([made(response), response.status], [[OSLO], "incomplete"]);
    assert.equal(response.incomplete_details.reason, "max_output_tokens");
  },
  breaks: async (send, first) => assert.rejects(send([first]), /backend/),
};

for (const [name, play] of Object.entries(scenarios)) {
  for (const send of [whole, streamed]) await play(send, user(`scenario: ${name}.`));
  console.log(`ok ${name}`);
}
