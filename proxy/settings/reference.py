"""The settings in words: the tables of the documentation, and the file that ``toolgraft init`` writes.

python -m proxy.settings.reference     print the tables
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from proxy.settings.keys import BACKEND, BACKEND_PREFIX, MODEL, SERVER, SERVER_PREFIX, Key

_HEAD = """\
# Settings of `toolgraft serve`. A flag comes before the environment, and the environment before this file.
# Take away the # before a setting to change it; what stands there is the default, or else an example.
"""


def table(keys: Iterable[Key], prefix: str | None) -> str:
    """A table in Markdown; ``prefix`` is that of the environment variables, None where there are none."""
    columns = ["key", "meaning", "default", "flag", *(["environment"] if prefix else [])]
    rows = [columns, ["---"] * len(columns)]
    for key in keys:
        row = [f"`{key.name}`", f"{key.help} Must be {key.kind.wanted}.", _code(key.shown), _code(key.flag or "")]
        rows.append([*row, _code(key.variable(prefix))] if prefix else row)
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)


def tables() -> Iterator[str]:
    """The tables of all settings."""
    yield table(SERVER, SERVER_PREFIX)
    yield table(BACKEND, BACKEND_PREFIX)
    yield table([key for key in MODEL if key not in BACKEND], None)


def example() -> str:
    """A file that shows every setting and changes none but the backend's URL, which has to be there."""
    lines = [_HEAD]
    lines += [_shown(key) for key in SERVER]
    lines.append(
        "# One such table for each backend. With several, `models`, `aliases` and `default` say what goes where."
    )
    lines.append("[[backend]]\n")
    lines += [_shown(key).replace("#url", "url") for key in BACKEND]
    lines.append("# One such table for models of the backend above that differ from the rest.")
    lines.append("#[[backend.model]]\n")
    lines += [_shown(key) for key in MODEL]
    return "\n".join(lines)


def _shown(key: Key) -> str:
    choice = f" ({', '.join(key.kind.options)})" if key.kind.options else ""
    return f"# {key.help}{choice}\n#{key.name} = {key.shown or key.example}\n"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    print("\n".join(tables()))
