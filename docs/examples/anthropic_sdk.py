"""The tool runner of the Anthropic SDK (`pip install anthropic`). The base URL is the root, without `/v1`."""

from anthropic import Anthropic, beta_tool

client = Anthropic(base_url="http://127.0.0.1:8787", api_key="unused")


@beta_tool
def get_weather(city: str) -> str:
    """The weather in a city.

    Args:
        city: The name of the city.
    """
    return f"Rain in {city}, 7 degrees."


runner = client.beta.messages.tool_runner(
    model="local",
    max_tokens=1024,
    tools=[get_weather],
    messages=[{"role": "user", "content": "Do I need an umbrella in Oslo?"}],
)
print("".join(block.text for block in runner.until_done().content if block.type == "text"))
