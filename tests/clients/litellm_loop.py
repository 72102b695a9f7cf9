# mypy: ignore-errors
"""A tool loop with LiteLLM, whole and streamed, over Chat Completions and Anthropic's Messages."""

import json

import litellm

QUESTION = {"role": "user", "content": "Do I need an umbrella in Oslo?"}
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"name": "get_weather", "description": "The weather in a city.", "parameters": PARAMETERS}


def ask(messages, stream, **model):
    told = {"messages": messages, "tools": [{"type": "function", "function": TOOL}], "api_key": "unused"}
    if not stream:
        return litellm.completion(**told, **model).choices[0].message
    chunks = list(litellm.completion(**told, **model, stream=True))
    return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message


def answer(**how) -> str:
    messages = [QUESTION]
    while calls := (message := ask(messages, **how)).tool_calls:
        messages.append(message.model_dump(exclude_none=True))
        for call in calls:
            city = json.loads(call.function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": f"Rain in {city}, 7 degrees."})
    return message.content


models = [
    {"model": "openai/local", "api_base": "http://127.0.0.1:8787/v1"},
    {"model": "anthropic/local", "api_base": "http://127.0.0.1:8787"},
]
(advice,) = {answer(stream=stream, **model) for model in models for stream in (False, True)}
print(advice)
