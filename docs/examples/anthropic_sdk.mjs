// A tool loop with the Anthropic SDK for Node (`npm install @anthropic-ai/sdk`). The base URL is the root, without /v1.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic({ baseURL: "http://127.0.0.1:8787", apiKey: "unused" });

const getWeather = ({ city }) => `Rain in ${city}, 7 degrees.`;

const input_schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ name: "get_weather", description: "The weather in a city.", input_schema }];
const messages = [{ role: "user", content: "Do I need an umbrella in Oslo?" }];
for (;;) {
  const { content } = await client.messages.create({ model: "local", max_tokens: 1024, messages, tools });
  const calls = content.filter((block) => block.type === "tool_use");
  if (calls.length === 0) {
    console.log(content.map((block) => (block.type === "text" ? block.text : "")).join(""));
    break;
  }
  const results = calls.map(({ id, input }) => ({ type: "tool_result", tool_use_id: id, content: getWeather(input) }));
  messages.push({ role: "assistant", content }, { role: "user", content: results });
}
