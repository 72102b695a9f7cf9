"""The model of a body that is passed on is found, whatever way the body comes in pieces, and every byte goes on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from proxy.apart import LARGE
from proxy.core.errors import ClientError
from proxy.relay import peek
from proxy.relay.native import with_model
from proxy.relay.peek import Passing
from proxy.wire import jsonio

FORM = "multipart/form-data; boundary=xyz"
FIELDS = (
    b'--xyz\r\nContent-Disposition: form-data; name="language"\r\n\r\nen\r\n'
    b'--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper\r\n'
    b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\ncontent-type: audio/wav\r\n\r\n'
)


class Pieces:
    """A body that comes in pieces, and how much of it was taken."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size, self.taken = data, size, 0

    async def __call__(self) -> AsyncIterator[bytes]:
        while self.taken < len(self.data):
            piece = self.data[self.taken : self.taken + self.size]
            self.taken += len(piece)
            yield piece


async def whole(passing: Passing) -> bytes:
    body = passing.body()
    return body if isinstance(body, bytes) else b"".join([piece async for piece in body])


@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("content_type", ["application/json", "", "application/x-www-form-urlencoded"])
async def test_the_member_of_a_json_object(size: int, content_type: str) -> None:
    data = json.dumps({"input": ["a" * 100] * 20, "model": "embedder"}).encode()
    passing = Passing(Pieces(data, size)())
    await passing.look(content_type)
    assert passing.model == "embedder"
    assert passing.repeatable
    assert passing.body() == data


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"model": 3}', b'{"a": {"model": "x"}}', b"model", b'"model"'])
async def test_what_names_no_model(data: bytes) -> None:
    for body in (data, Pieces(data, 1)()):
        passing = Passing(body)
        await passing.look("application/json")
        assert passing.model is None
        assert await whole(passing) == data


@pytest.mark.parametrize("size", [1, 13, 10_000])
@pytest.mark.parametrize("quoted", [False, True])
async def test_a_field_of_a_form_before_its_file(size: int, quoted: bool) -> None:
    data = FIELDS + b"\x00" * 5_000 + b"\r\n--xyz--\r\n"
    pieces = Pieces(data, size)
    passing = Passing(pieces())
    await passing.look('Multipart/Form-Data; charset=utf-8; boundary="xyz"' if quoted else FORM)
    assert passing.model == "whisper"
    assert pieces.taken < len(FIELDS) + size
    assert await whole(passing) == data


async def test_a_field_after_a_large_file_is_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peek, "MOST_FORM", 500)
    data = b'--xyz\r\nContent-Disposition: form-data; name="file"\r\n\r\n' + b"f" * 5_000 + b"\r\n" + FIELDS
    pieces = Pieces(data, 100)
    passing = Passing(pieces())
    await passing.look(FORM)
    assert passing.model is None
    assert pieces.taken <= 600
    assert await whole(passing) == data


async def test_a_field_of_another_name_or_inside_a_file_is_not_it() -> None:
    data = (
        b'--xyz\r\nContent-Disposition: form-data; name="model_name"\r\n\r\nno\r\n'
        b'--xyz\r\nContent-Disposition: form-data; name="file"\r\n\r\nname="model"\r\n\r\nno\r\n--xyz--\r\n'
    )
    passing = Passing(Pieces(data, 50)())
    await passing.look(FORM)
    assert passing.model is None


async def test_a_body_of_another_kind_is_not_held_back() -> None:
    pieces = Pieces(b"RIFF" + b"\x00" * 10_000, 100)
    passing = Passing(pieces())
    await passing.look("audio/wav")
    assert passing.model is None
    assert pieces.taken == 100
    assert await whole(passing) == pieces.data


async def test_a_json_body_beyond_the_bound_flows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peek, "MOST_JSON", 1_000)
    pieces = Pieces(b'{"input": "' + b"a" * 10_000 + b'", "model": "m"}', 100)
    passing = Passing(pieces())
    await passing.look("application/json")
    assert passing.model is None
    assert pieces.taken <= 1_200
    assert await whole(passing) == pieces.data


async def test_a_body_that_flows_can_be_sent_until_its_sending_has_begun() -> None:
    passing = Passing(Pieces(b"RIFF" * 100, 10)())
    await passing.look("audio/wav")
    assert passing.repeatable
    unused = passing.body()
    assert passing.repeatable
    assert not isinstance(unused, bytes)
    assert await anext(unused) == b"RIFFRIFFRI"
    assert not passing.repeatable


async def test_a_name_can_be_replaced() -> None:
    passing = Passing(b'{"model": "fast", "input": [1e5]}')
    await passing.look("application/json")
    assert await passing.rename("embedder-large") == len("embedder-large") - len("fast")
    assert passing.body() == b'{"model": "embedder-large", "input": [1e5]}'


async def test_a_name_in_a_form_can_be_replaced() -> None:
    passing = Passing(Pieces(FIELDS + b"\x00" * 1_000, 30)())
    await passing.look(FORM)
    assert await passing.rename("w") == -6
    assert await whole(passing) == FIELDS.replace(b"whisper", b"w") + b"\x00" * 1_000


@pytest.mark.parametrize("name", [None, "embedder"])
async def test_a_name_that_stays_changes_no_byte(name: str | None) -> None:
    passing = Passing(b' {"model":"embedder"}')
    await passing.look("")
    assert await passing.rename(name) == 0
    assert passing.body() == b' {"model":"embedder"}'


async def test_a_body_that_cannot_be_changed_is_the_client_s_fault() -> None:
    passing = Passing('{"model": "fast"}'.encode("utf-16"))
    passing.model = "fast"
    with pytest.raises(ClientError, match="cannot be put into the request body"):
        await passing.rename("slow")


async def test_a_form_of_nothing_but_boundaries_costs_what_its_bytes_do() -> None:
    async def seconds_for(lines: int) -> float:
        passing = Passing(Pieces(b"--B\r\n" * lines, 512)())
        started = time.process_time()
        await passing.look("multipart/form-data; boundary=B")
        assert passing.model is None
        return time.process_time() - started

    assert await seconds_for(40_000) < 40 * max(await seconds_for(4_000), 0.001)


async def test_a_large_body_is_read_and_changed_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def noted(work: Callable[..., Any]) -> Callable[..., Any]:
        def do(*given: Any) -> Any:
            threads.append(threading.current_thread().name)
            return work(*given)

        return do

    monkeypatch.setattr(jsonio, "loads", noted(jsonio.loads))
    monkeypatch.setattr(peek, "with_model", noted(with_model))
    passing = Passing(json.dumps({"model": "fast", "input": "x" * LARGE}).encode())
    await passing.look("application/json")
    await passing.rename("slow")
    assert len(threads) == 2
    assert threading.current_thread().name not in threads
