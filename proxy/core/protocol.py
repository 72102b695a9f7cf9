"""The words of our own protocol that the prompt writes and the reader looks for."""

from __future__ import annotations

RESULT_MARKS = ("<tool_result", "<tool_response")
"""How a tool result begins in our protocol and in the Hermes templates."""

RESULTS_LINE = "[Tool results]"
"""The line above the results in our protocol."""
