"""A tool loop with the OpenAI SDK (`pip install openai`)."""

import json

from openai import OpenAI

client = OpenAI(base_url="http://127.0.0.1:8787/v1", api_key="unused")


def get_weather(city: str) -> str:
    """Stands for the work of a real tool."""
    return f"Rain in {city}, 7 degrees."


parameters = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
function = {"name": "get_weather", "description": "The weather in a city.", "parameters": parameters}
messages = [{"role": "user", "content": "Do I need an umbrella in Oslo?"}]
while True:
    completion = client.chat.completions.create(
        model="local", messages=messages, tools=[{"type": "function", "function": function}]
    )
    message = completion.choices[0].message
    if not message.tool_calls:
        break
    messages.append(message)
    for call in message.tool_calls:
        result = get_weather(**json.loads(call.function.arguments))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
print(message.content)
