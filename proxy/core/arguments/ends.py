"""Where a quoted string ends, in text that may hold quotes inside strings without escaping them.

A quote ends a string where the text goes on as JSON does: another member or item, or closing brackets that fit. Up to
the first quote that is followed by something else the text is taken as it stands. From there on the string may end at
each quote that is followed by structure; only if one of them is, and nothing inside looks like structure, is it known.
"""

from __future__ import annotations

import re
from enum import Enum

from proxy.core.arguments.strings import NoReadingError

STRING = {quote: re.compile(rf"{quote}([^{quote}\\]*+(?:\\[\s\S][^{quote}\\]*+)*+){quote}") for quote in "\"'"}
"""A string from quote to quote, escapes skipped; its inside is group 1."""

SPACE = re.compile(r"(?:[ \t\n\r]++|//[^\n]{0,200}+\n|/\*(?:(?!\*/)[\s\S]){0,200}+\*/)*+")
"""White space and the comments of JavaScript."""

ONLY_CLOSERS = re.compile(r"[ \t\n\r}\]]*+\Z")

_PLAIN_SPACE = re.compile(r"[ \t\n\r]*+")
_NAME = r"""(?:"[^"\\]*+(?:\\[\s\S][^"\\]*+)*+"|'[^'\\]*+(?:\\[\s\S][^'\\]*+)*+'|[A-Za-z_$][\w$]*+)[ \t\n\r]*+:"""
_KEY = re.compile(_NAME)
_KEY_ESCAPED = re.compile(r'\\"[^"\\]*+\\"[ \t\n\r]*+:')
_ITEM = re.compile(r"""["'{\[]|\\"|-?[0-9]|(?:true|false|null|True|False|None|undefined)\b""")
_COLON = re.compile(r"[ \t\n\r]*+:")
_WORD = re.compile(r"\w")
_BEFORE_OPENING = frozenset(" \t\n\r([{<=:,;")

# An escape, or a quote that may end a string inside an object, an array, or nothing: a cheap look before follow().
_BEHIND_END = {"}": rf"[}}\]]|\Z|,[ \t\n\r]*+(?:[}}\]]|\\|{_NAME})", "]": r"[}\],]|\Z", "": r"\Z"}
_CANDIDATE = {
    (quote, closer): re.compile(rf"\\[\s\S]|{quote}(?=[ \t\n\r]*+(?:{behind}))")
    for quote in "\"'"
    for closer, behind in _BEHIND_END.items()
}
_INNER = {quote: re.compile(rf"\\[\s\S]|{quote}") for quote in "\"'"}

# What looks like structure inside a string, which may then have ended before it. ``, "key":`` and ``, key":`` (a quote
# is missing), ``, "key" "`` (a colon is missing):
_MEMBER_INSIDE = re.compile(r"""[,\n][ \t]*+["']?[^"'\\,\n]*+["'][ \t\n\r]*+[:"'{\[]""")
# in an array, a quote beside a comma:
_ITEM_INSIDE = {quote: re.compile(rf",[ \t\n\r]*+{quote}|{quote}[ \t\n\r]*+,") for quote in "\"'"}
# ``" "`` and ``""key":`` (a comma is missing):
_SIDE_BY_SIDE = {
    quote: re.compile(rf"{quote}[ \t\n\r]++{quote}|{quote}{quote}[^{quote}\\]*+{quote}[ \t\n\r]*+:") for quote in "\"'"
}
# ``"a" + "b"`` and ``"a""b"``, expressions of JavaScript and Python, and ``"a", "b"``, where ``"b"`` has no value:
_CONCATENATED = {
    quote: re.compile(rf"{quote}[^{quote}]*+{quote}(?:\s*+(?:[+,]\s*+)?{quote}[^{quote}]*+{quote})++")
    for quote in "\"'"
}


class Follow(Enum):
    """What comes behind a quote."""

    NONE = 0  # nothing that may follow a string
    LOOSE = 1  # nothing but brackets up to the end, too few, too many or others than are open
    EXACT = 2  # what must follow


def follow(text: str, at: int, closers: list[str], *, comments: bool = False) -> Follow:
    """What stands at ``text[at]``, behind a value inside the containers whose ``closers`` are awaited, innermost last.

    ``comments``: they may stand there as well. One with a quote in it may be a string: raises ``NoReadingError``.
    """
    depth = len(closers)
    at = _skip(text, at, comments)
    start = at
    while at < len(text):
        char = text[at]
        if depth and char == closers[depth - 1]:
            depth -= 1
            at = _skip(text, at + 1, comments)
        elif char in "}]":
            return Follow.LOOSE if ONLY_CLOSERS.match(text, start) else Follow.NONE
        elif depth and char == ",":
            at = _skip(text, at + 1, comments)
            if text[at : at + 1] == closers[depth - 1]:
                return Follow.EXACT  # a trailing comma
            if closers[depth - 1] == "]":
                return Follow.EXACT if _ITEM.match(text, at) else Follow.NONE
            return Follow.EXACT if _KEY.match(text, at) or _KEY_ESCAPED.match(text, at) else Follow.NONE
        elif not depth and at > start:  # another value
            if char in ",;":
                at = _skip(text, at + 1, comments)
            return Follow.EXACT if at == len(text) or text[at] in "{[" else Follow.NONE
        else:
            return Follow.NONE
    return Follow.LOOSE if depth else Follow.EXACT


def end_of_string(text: str, start: int, closers: list[str], *, later_item: bool = False) -> tuple[int, bool]:
    """The index of the quote that ends the value string whose opening quote is ``text[start]``, and whether quotes
    stand inside it. Raises ``NoReadingError`` when none does, or more than one may.

    ``later_item``: an item of an array stands in front of it. Then nobody knows where the first quote inside stands.
    """
    quote = text[start]
    plain = STRING[quote].match(text, start)
    if plain is None:
        raise NoReadingError
    if follow(text, plain.end(), closers, comments=True) is not Follow.NONE:
        return plain.end() - 1, False
    if later_item:
        raise NoReadingError
    end = _only_end(text, start, closers)
    whole = text[start : end + 1]
    ambiguous = (
        whole.startswith(quote * 3)  # a long string of Python
        or _COLON.match(text, plain.end())  # it was a key
        or _MEMBER_INSIDE.search(whole)
        or _SIDE_BY_SIDE[quote].search(whole)
        or _CONCATENATED[quote].fullmatch(whole)
        or (closers and closers[-1] == "]" and _ITEM_INSIDE[quote].search(whole))
        or _is_doubtful(whole)
    )
    if ambiguous:
        raise NoReadingError
    return end, True


def _only_end(text: str, start: int, closers: list[str]) -> int:
    ends = []
    candidates = _CANDIDATE[text[start], closers[-1] if closers else ""]
    for found in candidates.finditer(text, start + 1):
        if found[0][0] != "\\" and follow(text, found.end(), closers) is not Follow.NONE:
            ends.append(found.start())
            if len(ends) > 1:
                raise NoReadingError
    if not ends or follow(text, ends[0] + 1, closers) is not Follow.EXACT:
        raise NoReadingError
    return ends[0]


def _is_doubtful(whole: str) -> bool:
    """Whether a quote inside may be meant otherwise: behind a backslash, as half of an escape; without a partner, as
    the string's own end, where it opens a quotation (``"say "hi"``) or nothing follows it (``"hi""``). An inch sign or
    an apostrophe, between other characters, is neither.
    """
    quote = whole[0]
    inner = [found.start() for found in _INNER[quote].finditer(whole, 1, len(whole) - 1) if found[0] == quote]
    if any(whole[at - 1] == "\\" for at in inner):
        return True
    if len(inner) % 2 == 0:
        return False
    return not _WORD.search(whole, inner[-1]) or any(
        at == 1 or (whole[at - 1] in _BEFORE_OPENING and not whole[at + 1].isspace()) for at in inner
    )


def _skip(text: str, at: int, comments: bool) -> int:
    end = (SPACE if comments else _PLAIN_SPACE).match(text, at).end()  # type: ignore[union-attr]  # both always match
    skipped = text[at:end]
    if comments and ('"' in skipped or "'" in skipped):
        raise NoReadingError
    return end
