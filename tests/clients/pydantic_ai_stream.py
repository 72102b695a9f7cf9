# mypy: ignore-errors
"""An agent of Pydantic AI, streamed."""

import asyncio

from pydantic_ai import Agent, PartStartEvent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url="http://127.0.0.1:8787/v1", api_key="unused")
agent = Agent(OpenAIChatModel("local", provider=provider))


@agent.tool_plain
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 7 degrees."


async def main() -> None:
    parts = []

    async def listen(_, events) -> None:
        parts.extend([event.part async for event in events if isinstance(event, PartStartEvent)])

    result = await agent.run("Do I need an umbrella in Oslo?", event_stream_handler=listen)
    assert [part.part_kind for part in parts] == ["thinking", "text", "tool-call", "text"]
    print(result.output)


asyncio.run(main())
