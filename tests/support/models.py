"""A made-up model that knows what the trial's prompts want, behind a scripted backend of one kind or another."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from proxy.trial.prompts import BUILTIN, Call, read_prompts
from tests.support.backend import Backend, Exchange, Reply, body, error

KNOWN = {prompt.messages[0]["content"]: prompt for prompt in read_prompts(BUILTIN)}

PROTOCOL, EXAMPLE = "<tools>", "example_population"
"""What stands in the prompt where it tells of tools, and where it shows an example of a call."""

Writes = Callable[[Sequence[Call]], str]
"""The text in which a model writes calls."""


def tagged(calls: Sequence[Call]) -> str:
    """As the protocol in the prompt wants them."""
    return "\n".join(f"<tool_call>{_call(call)}</tool_call>" for call in calls)


def talk(calls: Sequence[Call]) -> str:
    """As a model that calls no tools."""
    return "I would do that for you."


def _call(call: Call) -> str:
    return json.dumps({"name": call.name, "arguments": plain(call.arguments)})


def plain(expected: Any) -> Any:
    """A value that is as ``expected``."""
    match expected:
        case {"$any": [first, *_]}:
            return plain(first)
        case {"$has": text}:
            return text
        case dict():
            return {key: plain(value) for key, value in expected.items()}
        case list():
            return [plain(value) for value in expected]
    return expected


def model(
    writes: Writes = tagged,
    *,
    native: bool = False,
    refuses_tools: str | None = None,
    refuses_system: bool = False,
    drops_system: bool = False,
    needs: str = "",
    forced_by: str | None = None,
    thinks: bool = False,
) -> Reply:
    """Answers a chat request. It writes calls only where the text that it ``needs`` is in its prompt.

    ``forced_by`` is the field that makes it write a call whatever it would say itself.
    """

    async def reply(exchange: Exchange) -> None:
        asked = exchange.request.json
        messages = asked["messages"]
        if asked.get("tools") and refuses_tools:
            await error(400, refuses_tools)(exchange)
            return
        if refuses_system and messages[0]["role"] == "system":
            await error(400, "System role not supported")(exchange)
            return
        said = "\n".join(str(each["content"]) for each in messages if not drops_system or each["role"] != "system")
        prompt = next((known for text, known in KNOWN.items() if text in said), None)
        calls = prompt.calls if prompt else ()
        message: dict[str, Any] = {"role": "assistant", "content": "x" if prompt is None else "Gladly."}
        if prompt and prompt.answer:
            message["content"] = f"It is {prompt.answer[0]}."
        if forced_by and forced_by in asked:
            message["content"] = tagged(calls or [Call("report_colour", {"colour": "red"})])
        elif calls and native and asked.get("tools"):
            message["tool_calls"] = [
                {"id": f"c{number}", "type": "function", "function": {**json.loads(_call(call)), "arguments": text}}
                for number, call in enumerate(calls)
                for text in [json.dumps(plain(call.arguments))]
            ]
        elif calls and needs in said:
            message["content"] = writes(calls)
        if thinks and "tool_calls" not in message:
            message["content"] = f"Hm.</think>{message['content']}"
        counted = said + (json.dumps(asked["tools"]) if native and asked.get("tools") else "")
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": len(counted), "completion_tokens": 5, "total_tokens": len(counted) + 5}
        await body({"id": "c", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage})(
            exchange
        )

    return reply


def serving(reply: Reply, **routes: Reply) -> Backend:
    """A backend whose chats are answered by ``reply``. ``routes`` are paths, with ``__`` for a slash."""
    paths = {f"/{name.replace('__', '/')}": route for name, route in routes.items()}
    return Backend({"/v1/chat/completions": reply, **paths})


def llama_cpp(reply: Reply, *, tools: bool = False, context: int = 8192) -> Backend:
    """A llama.cpp server."""
    caps = {"supports_tools": tools, "supports_tool_calls": tools}
    props = {"build_info": "b9-x", "chat_template": "", "chat_template_caps": caps}
    props["default_generation_settings"] = {"n_ctx": context}
    return serving(reply, props=body(props))


def ollama(reply: Reply, *, tools: bool = False, context: int = 8192) -> Backend:
    """Ollama with one model."""
    return serving(
        reply,
        api__show=body({"details": {}, "capabilities": ["completion", *(["tools"] if tools else [])]}),
        api__version=body({"version": "0.9.1"}),
        api__ps=body({"models": [{"name": "scripted", "model": "scripted", "context_length": context}]}),
    )


def vllm(reply: Reply, *, context: int = 32768) -> Backend:
    """vLLM, started without a parser for calls."""
    entry = {"id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": context}
    return serving(reply, v1__models=body({"object": "list", "data": [entry]}))
