"""The fixtures of the conformance suite that this reader answers otherwise, and why."""

from __future__ import annotations

OTHERWISE = {
    "gpt-oss/llamacpp-builtin-python-recipient": (
        "A message to the built-in python tool, which is not offered and gets no JSON. The suite lets it vanish; here "
        "what cannot be read as a call stays visible."
    ),
    "kimi/k2i-vllm-noise-between-markers": (
        "Words between a section's marker and its first call. The suite lets them vanish; here text outside of calls "
        "is never lost."
    ),
    "qwen3-xml/llamacpp-q35-call-inside-think": (
        "A call in reasoning that is never closed. Both find the call; the suite ends the reasoning in front of it, "
        "here its text stays part of the reasoning, so that a stream need not take back what went out."
    ),
}
