// A tool loop with the OpenAI SDK for Node (`npm install openai`).
import OpenAI from "openai";

const client = new OpenAI({ baseURL: "http://127.0.0.1:8787/v1", apiKey: "unused" });

const getWeather = ({ city }) => `Rain in ${city}, 7 degrees.`;

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tool = {
  type: "function",
  function: { name: "get_weather", description: "The weather in a city.", parameters },
};
const messages = [{ role: "user", content: "Do I need an umbrella in Oslo?" }];
for (;;) {
  const completion = await client.chat.completions.create({ model: "local", messages, tools: [tool] });
  const { message } = completion.choices[0];
  if (!message.tool_calls) {
    console.log(message.content);
    break;
  }
  messages.push(message);
  for (const call of message.tool_calls) {
    const content = getWeather(JSON.parse(call.function.arguments));
    messages.push({ role: "tool", tool_call_id: call.id, content });
  }
}
