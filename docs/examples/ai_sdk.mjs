// The Vercel AI SDK (`npm install ai @ai-sdk/openai-compatible zod`).
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

const toolgraft = createOpenAICompatible({ name: "toolgraft", baseURL: "http://127.0.0.1:8787/v1", apiKey: "unused" });

const get_weather = tool({
  description: "The weather in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => `Rain in ${city}, 7 degrees.`,
});

const { text } = await generateText({
  model: toolgraft("local"),
  prompt: "Do I need an umbrella in Oslo?",
  tools: { get_weather },
  stopWhen: stepCountIs(5),
});
console.log(text);
