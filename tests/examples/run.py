"""The examples in ``docs/examples`` as they are written there: installs what each needs and runs it.

    python -m tests.examples.run [--dir DIR] [NAME ...]

A program has to come to the model's advice by way of its tool; the agents' command lines read one file and write
another. Each is tried before a model that only writes text and before a server with tools of its own. Needs npm, PyPI
and the network.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.clients.agents import AGENTS
from tests.clients.loops import Loop
from tests.clients.run import main
from tests.examples.pages import FOLDER

EXAMPLES: Sequence[Loop] = (
    Loop("OpenAI SDK (Python)", "Chat Completions", ["openai"], FOLDER / "openai_sdk.py"),
    Loop("OpenAI SDK (Node)", "Chat Completions", ["openai"], FOLDER / "openai_sdk.mjs"),
    Loop("Anthropic SDK (Python)", "Messages", ["anthropic"], FOLDER / "anthropic_sdk.py"),
    Loop("Anthropic SDK (Node)", "Messages", ["@anthropic-ai/sdk"], FOLDER / "anthropic_sdk.mjs"),
    Loop("LangChain", "Chat Completions", ["langchain", "langchain-openai"], FOLDER / "langchain_agent.py"),
    Loop("Pydantic AI", "Chat Completions", ["pydantic-ai-slim[openai]"], FOLDER / "pydantic_ai_agent.py"),
    Loop("Vercel AI SDK", "Chat Completions", ["ai", "@ai-sdk/openai-compatible", "zod"], FOLDER / "ai_sdk.mjs"),
)
"""The programs; the pages of agents are run by their rows in ``tests/clients/agents.py``."""

if __name__ == "__main__":
    sys.exit(main([*EXAMPLES, *AGENTS], __doc__))
