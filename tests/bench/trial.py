"""What the embedded model makes of 20 prompts that need a tool: ``python -m tests.bench.trial``.

Each prompt goes to the model's own server with native tools, and through the proxy in several ways. A reply is valid
when it holds calls, all of declared tools with arguments that fit their schemas; it is right when it is the one call
that was expected. Temperature 0.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from openai import DefaultHttpxClient, OpenAI

from proxy.config import BackendConfig, Config
from proxy.core.arguments.schema import ToolSchema
from proxy.core.prompt import PromptOptions
from proxy.local import LocalModel
from proxy.server import in_background

Arguments: TypeAlias = dict[str, Any]
Check: TypeAlias = Callable[[Arguments], bool]


def tool(name: str, description: str, **parameters: str) -> Any:
    """A tool in OpenAI's shape whose ``parameters`` (name and JSON type) are all required."""
    properties = {key: {"type": kind} for key, kind in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


TOOLS = (
    tool("get_weather", "Get the weather of a city.", city="string"),
    tool("read_file", "Read a text file.", path="string"),
    tool("set_timer", "Start a timer.", minutes="integer"),
    tool("send_message", "Send a text message to a person.", to="string", text="string"),
    tool("convert_currency", "Convert money.", amount="number", source="string", target="string"),
    tool("search_web", "Search the web.", query="string"),
)
SCHEMAS = {each["function"]["name"]: ToolSchema(each["function"]["parameters"]) for each in TOOLS}


def holds(**words: str) -> Check:
    """Each argument named holds its word, in any case."""
    return lambda given: all(word in str(given.get(key, "")).lower() for key, word in words.items())


def number(key: str, value: float) -> Check:
    """The argument is this number."""
    return lambda given: given.get(key) == value


PROMPTS: Sequence[tuple[str, str, Check]] = (
    ("What is the weather in Oslo?", "get_weather", holds(city="oslo")),
    ("Will I need an umbrella in Lisbon today?", "get_weather", holds(city="lisbon")),
    ("How warm is it in Nairobi right now?", "get_weather", holds(city="nairobi")),
    ("Is it snowing in Sapporo?", "get_weather", holds(city="sapporo")),
    ("Read the file notes.txt.", "read_file", holds(path="notes.txt")),
    ("What does README.md say?", "read_file", holds(path="readme.md")),
    ("Show me the content of /etc/hosts.", "read_file", holds(path="/etc/hosts")),
    ("Open config/settings.json and tell me what is in it.", "read_file", holds(path="config/settings.json")),
    ("Set a timer for 5 minutes.", "set_timer", number("minutes", 5)),
    ("Remind me in 20 minutes.", "set_timer", number("minutes", 20)),
    ("Start a timer of 45 minutes for the bread.", "set_timer", number("minutes", 45)),
    ("Tell Maria that I will be late.", "send_message", holds(to="maria", text="late")),
    ("Send Tom a message: dinner is ready.", "send_message", holds(to="tom", text="dinner")),
    ("Text Aisha that the meeting moved to Friday.", "send_message", holds(to="aisha", text="friday")),
    ("How much is 100 US dollars in euros?", "convert_currency", number("amount", 100)),
    ("Convert 250 yen to pounds.", "convert_currency", number("amount", 250)),
    ("What are 40 Swiss francs worth in Danish kroner?", "convert_currency", number("amount", 40)),
    ("Search the web for the tallest bridge in Europe.", "search_web", holds(query="bridge")),
    ("Find a recipe for pumpkin soup on the internet.", "search_web", holds(query="pumpkin")),
    ("Look up who won the chess world cup in 2023.", "search_web", holds(query="chess")),
)

EARLIER: Sequence[Any] = (
    {"role": "user", "content": "What is the weather in Rome?"},
    {
        "role": "assistant",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "Sunny, 24 degrees Celsius."},
    {"role": "assistant", "content": "It is sunny in Rome, at 24 degrees."},
)
"""Turns that hold a call of one of the tools: a worked example that the client gives."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to ask. ``example``: None goes straight to the server; else whether the prompt holds a made-up example."""

    name: str
    example: bool | None
    choice: str
    earlier: Sequence[Any] = ()


WAYS = (
    Way("the server's own tools, auto", None, "auto"),
    Way("the server's own tools, required", None, "required"),
    Way("free", False, "auto"),
    Way("free, example in the prompt", True, "auto"),
    Way("free, example in the history", False, "auto", EARLIER),
    Way("forced", False, "required"),
    Way("forced, example in the prompt", True, "required"),
    Way("forced, example in the history", False, "required", EARLIER),
)


def judge(message: Any, name: str, check: Check) -> tuple[bool, bool]:
    """Whether the calls of a reply are valid, and right."""
    calls = [(call.function.name, call.function.arguments) for call in message.tool_calls or ()]
    valid = bool(calls) and all(
        called in SCHEMAS and not SCHEMAS[called].validate(arguments) for called, arguments in calls
    )
    right = valid and len(calls) == 1 and calls[0][0] == name and check(json.loads(calls[0][1]))
    return valid, right


def run(way: Way, url: str) -> tuple[int, int]:
    """The valid and the right replies of the API at ``url``."""
    valid = right = 0
    with DefaultHttpxClient(trust_env=False) as http, OpenAI(base_url=url, api_key="x", http_client=http) as client:
        for prompt, name, check in PROMPTS:
            asked: Any = {
                "model": "m",
                "messages": [*way.earlier, {"role": "user", "content": prompt}],
                "tools": list(TOOLS),
                "tool_choice": way.choice,
            }
            reply = client.chat.completions.create(**asked, temperature=0, seed=1, max_tokens=100)
            is_valid, is_right = judge(reply.choices[0].message, name, check)
            valid, right = valid + is_valid, right + is_right
    return valid, right


def main() -> None:
    """Print the table."""
    print(f"{len(PROMPTS)} prompts{'':27}{'valid':>8}{'right':>8}{'s':>8}")
    with LocalModel() as model:
        for way in WAYS:
            begun = time.monotonic()
            if way.example is None:
                valid, right = run(way, f"{model.url}/v1")
            else:
                backend = BackendConfig(model.url, prompt=PromptOptions(example=way.example))
                with in_background(Config((backend,), port=0)) as proxy:
                    valid, right = run(way, f"{proxy.url}/v1")
            print(f"{way.name:37}{valid:>8}{right:>8}{time.monotonic() - begun:>8.0f}", flush=True)


if __name__ == "__main__":
    main()
