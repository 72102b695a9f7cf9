"""Whether a call comes when the client requires one, even if the prompt talks the model out of it."""

from __future__ import annotations

from dataclasses import replace

from proxy.config import BackendConfig
from proxy.doctor.findings import Finding
from proxy.trial.prompts import Call, Prompt
from proxy.trial.run import Limits, run
from proxy.trial.ways import Way

_TOOL = {
    "type": "function",
    "function": {
        "name": "report_colour",
        "description": "Report a colour.",
        "parameters": {
            "type": "object",
            "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}},
            "required": ["colour"],
        },
    },
}
_PROMPT = Prompt(
    "forcing",
    "forcing",
    (_TOOL,),
    ({"role": "user", "content": "Write the word hello and nothing else. Use no tool."},),
    (Call("report_colour", {}),),
)
_FREE = Way("a call required, not constrained", constrain="off", reask=0, forced=True)
_FORCED = replace(_FREE, title="a call required, constrained", constrain="required")


def try_forcing(backend: BackendConfig, limits: Limits) -> tuple[Finding, bool]:
    """What was found, and whether a required call came."""
    (forced,) = run(_FORCED, (_PROMPT,), backend, limits)
    if forced.valid:
        (free,) = run(_FREE, (_PROMPT,), backend, limits)
        how = "here even without being constrained" if free.valid else "whatever the prompt says"
        return Finding("required calls", f"A call that is required comes, {how}."), True
    why = f" ({forced.error})" if forced.error else ""
    return (
        Finding(
            "required calls",
            f"The server cannot be made to write a call{why}.",
            "note",
            "A call that is required is only asked for in the prompt. Programs must expect an answer without one.",
        ),
        False,
    )
