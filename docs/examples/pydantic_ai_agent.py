"""An agent of Pydantic AI (`pip install 'pydantic-ai-slim[openai]'`)."""

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

provider = OpenAIProvider(base_url="http://127.0.0.1:8787/v1", api_key="unused")
agent = Agent(OpenAIChatModel("local", provider=provider))


@agent.tool_plain
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 7 degrees."


print(agent.run_sync("Do I need an umbrella in Oslo?").output)
