"""What each kind of value takes from a file and from a text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from proxy.access import hash_key
from proxy.settings import kinds
from proxy.settings.kinds import Kind

HASH = hash_key(b"tg-1")

Value = TypeVar("Value")


def refuses(take: Callable[[Value], object], value: Value) -> bool:
    try:
        take(value)
    except ValueError:
        return True
    return False


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        (kinds.text(), " a ", "a"),
        (kinds.path(), "a/b", Path("a/b")),
        (kinds.variable(), "MY_KEY", "MY_KEY"),
        (kinds.choice(("a", "b")), "b", "b"),
        (kinds.switch(), False, False),
        (kinds.switch_or_auto(), "auto", None),
        (kinds.switch_or_auto(), True, True),
        (kinds.whole(0, 9), 9, 9),
        (kinds.whole(0), 10**30, 10**30),
        (kinds.seconds(), 3, 3.0),
        (kinds.texts(), "a,b", ("a,b",)),
        (kinds.texts(), ["a", " b"], ("a", "b")),
        (kinds.names(), {"a": "b"}, {"a": "b"}),
        (kinds.names(), {}, {}),
        (kinds.hashes(), {"ann": HASH}, {"ann": HASH}),
        (kinds.origins(), "*", ("*",)),
        (kinds.origins(), ["https://a.b:8443", "app://obsidian.md"], ("https://a.b:8443", "app://obsidian.md")),
    ],
)
def test_values_of_a_file(kind: Kind, value: object, held: object) -> None:
    assert kind.check(value) == held


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (kinds.text(), ""),
        (kinds.text(), " "),
        (kinds.text(), 3),
        (kinds.path(), ["a"]),
        (kinds.variable(), "sk-123"),
        (kinds.variable(), ""),
        (kinds.choice(("a", "b")), "A"),
        (kinds.choice(("a", "b")), None),
        (kinds.switch(), "true"),
        (kinds.switch(), 1),
        (kinds.switch_or_auto(), "yes"),
        (kinds.switch_or_auto(), 0),
        (kinds.whole(0, 9), 10),
        (kinds.whole(1), 0),
        (kinds.whole(0), True),
        (kinds.whole(0), 1.0),
        (kinds.whole(0), "1"),
        (kinds.seconds(), 0),
        (kinds.seconds(), -1.5),
        (kinds.seconds(), float("inf")),
        (kinds.seconds(), float("nan")),
        (kinds.seconds(), True),
        (kinds.texts(), []),
        (kinds.texts(), ["a", 3]),
        (kinds.texts(), {"a": "b"}),
        (kinds.texts(), ""),
        (kinds.names(), ["a"]),
        (kinds.names(), {"a": 3}),
        (kinds.names(), {"": "a"}),
        (kinds.hashes(), {}),
        (kinds.hashes(), {"ann": "tg-secret"}),
        (kinds.hashes(), {"ann": HASH, "bob": HASH[:-1]}),
        (kinds.hashes(), HASH),
        (kinds.origins(), "https://a.b/"),
        (kinds.origins(), "https://a.b/chat"),
        (kinds.origins(), "a.b"),
        (kinds.origins(), "null"),
        (kinds.origins(), ["*", "https://"]),
    ],
)
def test_values_of_a_file_that_are_refused(kind: Kind, value: object) -> None:
    assert refuses(kind.check, value)


@pytest.mark.parametrize(
    ("kind", "given", "held"),
    [
        (kinds.text(), " a b ", "a b"),
        (kinds.path(), "/a", Path("/a")),
        (kinds.choice(("a", "b")), "a", "a"),
        (kinds.switch(), "TRUE", True),
        (kinds.switch(), "0", False),
        (kinds.switch(), " on ", True),
        (kinds.switch_or_auto(), "auto", None),
        (kinds.switch_or_auto(), "false", False),
        (kinds.whole(0, 65535), "8080", 8080),
        (kinds.seconds(), "1.5", 1.5),
        (kinds.texts(), "a, b,", ("a", "b")),
        (kinds.names(), "a=b, c = d=e", {"a": "b", "c": "d=e"}),
    ],
)
def test_texts(kind: Kind, given: str, held: object) -> None:
    assert kind.read(given) == held


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (kinds.text(), "  "),
        (kinds.variable(), "a b"),
        (kinds.choice(("a", "b")), "c"),
        (kinds.switch(), "maybe"),
        (kinds.switch_or_auto(), ""),
        (kinds.whole(0, 9), "ten"),
        (kinds.whole(0, 9), "-1"),
        (kinds.whole(0, 9), "1.0"),
        (kinds.seconds(), "nan"),
        (kinds.seconds(), "soon"),
        (kinds.texts(), ","),
        (kinds.names(), "a"),
        (kinds.names(), "a="),
    ],
)
def test_texts_that_are_refused(kind: Kind, given: str) -> None:
    assert refuses(kind.read, given)


def test_what_is_wanted_is_said_in_words() -> None:
    assert kinds.choice(("a", "b", "c")).wanted == '"a", "b" or "c"'
    assert kinds.whole(0, 9).wanted == "a whole number from 0 to 9"
    assert kinds.whole(1).wanted == "a whole number of at least 1"
    assert kinds.variable().secret
    assert not kinds.text().secret
