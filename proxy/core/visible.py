"""The visible text of a reply: outer white space trimmed, a turn's terminators dropped at its very end."""

from __future__ import annotations


class Visible:
    """Takes text in pieces and gives back what may go out; white space and terminators wait for text behind them."""

    def __init__(self) -> None:
        self.started = False
        self._held: list[str] = []

    def take(self, text: str) -> str:
        """What may go out now that ``text`` has come."""
        solid = text.rstrip()
        if not solid:
            if text and (self.started or self._held):
                self._held.append(text)
            return ""
        out = solid
        if self._held:
            out = "".join(self._held) + solid
            self._held.clear()
        if not self.started:
            self.started = True
            out = out.lstrip()
        if len(solid) < len(text):
            self._held.append(text[len(solid) :])
        return out

    def hold(self, mark: str) -> None:
        """``mark`` is text only if more text follows."""
        self._held.append(mark)
