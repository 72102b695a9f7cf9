# mypy: ignore-errors
"""An agent of the OpenAI Agents SDK, over both of OpenAI's APIs, whole and streamed."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

QUESTION = "Do I need an umbrella in Oslo?"


@function_tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 7 degrees."


async def main() -> None:
    set_tracing_disabled(True)
    answers = set()
    client = AsyncOpenAI(base_url="http://127.0.0.1:8787/v1", api_key="unused")
    for model in (OpenAIResponsesModel("local", client), OpenAIChatCompletionsModel("local", client)):
        agent = Agent(name="adviser", tools=[get_weather], model=model)
        answers.add((await Runner.run(agent, QUESTION)).final_output)
        run = Runner.run_streamed(agent, QUESTION)
        assert [event async for event in run.stream_events()]
        answers.add(run.final_output)
    (answer,) = answers
    print(answer)


asyncio.run(main())
