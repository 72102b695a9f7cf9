"""The ways in which a model can be asked to call tools, as settings of the proxy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from proxy.config import BackendConfig, Constrain, DispatcherName, PromptExample
from proxy.core.prompt import Style


@dataclass(frozen=True, slots=True)
class Way:
    """One way. None leaves a setting as the backend has it. ``forced``: the client says that a call has to come."""

    title: str
    dispatcher: DispatcherName = "xml"
    style: Style | None = None
    example: PromptExample = "off"
    constrain: Constrain | None = None
    reask: int | None = None
    forced: bool = False

    def config(self, backend: BackendConfig) -> BackendConfig:
        """The settings of ``backend`` with this way's own."""
        return replace(
            backend,
            dispatcher=self.dispatcher,
            prompt=backend.prompt if self.style is None else replace(backend.prompt, style=self.style),
            prompt_example=self.example,
            constrain=backend.constrain if self.constrain is None else self.constrain,
            reask=backend.reask if self.reask is None else self.reask,
        )


WAYS: Mapping[str, Way] = {
    "native": Way("native", dispatcher="native"),
    "auto": Way("native, calls in text read", dispatcher="auto"),
    "xml": Way("xml", style="full"),
    "compact": Way("xml, compact", style="compact"),
    "example": Way("xml, with an example", style="full", example="on"),
    "always": Way("xml, calls always constrained", style="full", constrain="always"),
    "reask": Way("xml, asked again", style="full", reask=1),
    "forced": Way("xml, a call required", style="full", forced=True),
    "forced-compact": Way("xml, compact, a call required", style="compact", forced=True),
    "forced-example": Way("xml, with an example, a call required", style="full", example="on", forced=True),
}
"""By short name. ``auto`` is for backends that call tools by themselves; elsewhere it is the same as ``xml``."""
