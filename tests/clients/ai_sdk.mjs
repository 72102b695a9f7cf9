// Plays every scenario with the Vercel AI SDK, whole and streamed, over three of its providers: node ai_sdk.mjs URL
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const settings = { baseURL: `${process.argv[2]}/v1`, apiKey: "none" };
const openai = createOpenAI(settings);
const providers = {
  responses: openai.responses("scripted"),
  chat: openai.chat("scripted"),
  compatible: createOpenAICompatible({ ...settings, name: "toolgraft", includeUsage: true })("scripted"),
};

// Tools without `execute`: the calls come back. With it, the SDK goes on by itself.
const shapes = {
  get_weather: z.object({ city: z.string() }),
  get_time: z.object({}),
  write_file: z.object({ path: z.string(), text: z.string() }),
};
const offered = (execute) =>
  Object.fromEntries(Object.entries(shapes).map(([name, inputSchema]) => [name, tool({ inputSchema, execute })]));

const asked = (model, name, { execute, ...more }) => ({
  model,
  prompt: `scenario: ${name}.`,
  tools: offered(execute),
  maxRetries: 0,
  stopWhen: stepCountIs(5),
  ...more,
});
const whole = (model, name, more = {}) => generateText(asked(model, name, more));
const streamed = async (model, name, more = {}) => {
  let failure;
  const result = streamText({ ...asked(model, name, more), onError: ({ error }) => (failure = error) });
  await result.consumeStream();
  if (failure) throw failure;
  const keys = ["text", "toolCalls", "finishReason", "usage", "steps", "reasoningText"];
  return Object.fromEntries(await Promise.all(keys.map(async (key) => [key, await result[key]])));
};

// A server with tools of its own may send the beginning of a call that was cut: the SDK marks it as invalid.
const made = (result) => result.toolCalls.filter((call) => !call.invalid).map((call) => [call.toolName, call.input]);

const OSLO = ["get_weather", { city: "Oslo" }];
const ROME = ["get_weather", { city: "Rome" }];

const scenarios = {
  single: async (send) => {
    const result = await send();
    assert.deepEqual(made(result), [OSLO]);
    assert.equal(result.text.trim(), "Let me look.");
    assert.equal(result.finishReason, "tool-calls");
    assert.equal(result.usage.outputTokens, 30);
  },
  parallel: async (send) => {
    const result = await send();
    assert.deepEqual(made(result), [OSLO, ROME]);
    assert.notEqual(result.toolCalls[0].toolCallId, result.toolCalls[1].toolCallId);
  },
  steps: async (send) => {
    const result = await send({ execute: async () => "fine" });
    assert.equal(result.text, "Take a coat.");
    assert.deepEqual(
      result.steps.map((step) => step.toolCalls.map((call) => call.toolName)),
      [["get_weather"], ["get_time"], []],
    );
  },
  "no-arguments": async (send) => assert.deepEqual(made(await send()), [["get_time", {}]]),
  "tool-error": async (send) => {
    const execute = async () => {
      throw new Error("no network");
    };
    assert.equal((await send({ execute })).text, "I could not look.");
  },
  thinking: async (send, provider) => {
    const result = await send({ providerOptions: { openai: { reasoningSummary: "auto", forceReasoning: true } } });
    assert.equal(result.text, "Hello.");
    // The SDK's own provider for Chat Completions does not read reasoning.
    if (provider !== "chat") assert.equal(result.reasoningText, "They greet.");
  },
  markup: async (send) => {
    const input = { path: "a.md", text: 'Say </tool_call> or "</tool_call>".\n' };
    assert.deepEqual(made(await send()), [["write_file", input]]);
  },
  forced: async (send) => {
    for (const toolChoice of ["required", { type: "tool", toolName: "get_weather" }])
      assert.deepEqual(made(await send({ toolChoice })), [OSLO]);
  },
  "one-only": async (send) =>
    assert.deepEqual(made(await send({ providerOptions: { openai: { parallelToolCalls: false } } })), [OSLO]),
  cut: async (send) => {
    const result = await send();
    assert.deepEqual([made(result), result.finishReason], [[OSLO], "length"]);
  },
  breaks: async (send) => {
    const result = await send().catch((error) => error);
    assert.ok(result.message || !["stop", "tool-calls"].includes(result.finishReason));
  },
};

for (const [name, play] of Object.entries(scenarios)) {
  for (const [provider, model] of Object.entries(providers))
    for (const way of [whole, streamed]) await play((more) => way(model, name, more), provider);
  console.log(`ok ${name}`);
}
