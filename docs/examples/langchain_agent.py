"""An agent of LangChain (`pip install langchain langchain-openai`)."""

from langchain.agents import create_agent
from langchain_openai import ChatOpenAI

model = ChatOpenAI(base_url="http://127.0.0.1:8787/v1", api_key="unused", model="local")


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 7 degrees."


agent = create_agent(model, tools=[get_weather])
state = agent.invoke({"messages": [{"role": "user", "content": "Do I need an umbrella in Oslo?"}]})
print(state["messages"][-1].content)
