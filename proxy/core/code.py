"""Where the visible text stands with regard to Markdown code: at the start of a line, in inline code, in a fence."""

from __future__ import annotations

import re

TICKS = re.compile(r"`+|~+")
_LONGEST_FENCE_LINE = 100


class Code:
    """The state behind the text shown so far. Inline code ends with its line: a stray backtick harms one line."""

    def __init__(self) -> None:
        self.line_start = True
        """Only white space has come since the last line break."""
        self.inline = 0
        """The length of the run of backticks that opened inline code; 0 outside of it."""
        self.fence = ""
        """The run that opened the code fence; empty outside of one."""

    @property
    def outside(self) -> bool:
        """Whether the text is in no kind of code."""
        return not self.inline and not self.fence

    def advance(self, text: str) -> None:
        """``text``, without any mark of code, has been shown."""
        line = text.rfind("\n")
        if line >= 0:
            self.inline = 0
            self.line_start = not text[line + 1 :].strip()
        elif self.line_start:
            self.line_start = not text.strip()

    def opens_fence(self, text: str, at: int, end: int, *, final: bool) -> int | None:
        """The index past the line of the fence that the run ``text[at:end]`` opens; 0: it opens none, None: unknown."""
        if self.fence or not self.line_start or end - at < 3:
            return 0
        line = text.find("\n", end, at + _LONGEST_FENCE_LINE)
        if line < 0:
            return None if not final and len(text) - at < _LONGEST_FENCE_LINE else 0
        return line + 1 if "`" not in text[end:line] else 0

    def closes_fence(self, text: str) -> bool:
        """Whether a line of ``text``, which was read as something else than text, closes the open fence."""
        return bool(self.fence) and re.search(rf"^[ \t]*{self.fence}", text, re.MULTILINE) is not None

    def run(self, ticks: str) -> None:
        """A run of backticks or tildes that opens no fence."""
        if self.fence:
            if self.line_start and ticks.startswith(self.fence):
                self.fence = ""
        elif ticks[0] == "`":
            if not self.inline:
                self.inline = len(ticks)
            elif len(ticks) == self.inline:
                self.inline = 0
