import pytest

from proxy.core.errors import ClientError
from proxy.core.model import Json
from proxy.wire.bodies import load_body, text, typed


def test_a_body_is_an_object() -> None:
    assert load_body(b'{"a": 12345678901234567890}') == {"a": 12345678901234567890}


@pytest.mark.parametrize(
    ("body", "says"), [(b"", "not valid JSON"), (b"{", "not valid JSON"), (b"[]", "an object"), (b"null", "an object")]
)
def test_what_is_no_object_is_the_clients_fault(body: bytes, says: str) -> None:
    with pytest.raises(ClientError, match=says.replace("an object", "a JSON object")) as caught:
        load_body(body)
    assert caught.value.status == 400


@pytest.mark.parametrize("raw", [{}, {"stream": None}])
def test_a_member_that_is_not_there(raw: dict[str, Json]) -> None:
    assert typed(raw, "stream", bool, "true or false") is None


def test_a_member_of_another_type_is_named() -> None:
    assert typed({"stream": False}, "stream", bool, "true or false") is False
    with pytest.raises(ClientError, match="`stream` must be true or false") as caught:
        typed({"stream": "yes"}, "stream", bool, "true or false")
    assert caught.value.param == "stream"


@pytest.mark.parametrize(("value", "read"), [("a", "a"), (None, ""), (3, ""), (["a"], "")])
def test_only_a_string_is_text(value: Json, read: str) -> None:
    assert text(value) == read
