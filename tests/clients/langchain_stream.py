# mypy: ignore-errors
"""An agent of LangChain, streamed token by token."""

from langchain.agents import create_agent
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 7 degrees."


model = ChatOpenAI(base_url="http://127.0.0.1:8787/v1", api_key="unused", model="local", stream_usage=True)
agent = create_agent(model, tools=[get_weather])
asked = {"messages": [{"role": "user", "content": "Do I need an umbrella in Oslo?"}]}
pieces = [piece for piece, _ in agent.stream(asked, stream_mode="messages") if isinstance(piece, AIMessageChunk)]
assert len(pieces) > 1
assert any(piece.usage_metadata for piece in pieces)
print("".join(str(piece.text) for piece in pieces))
