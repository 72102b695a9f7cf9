import pytest

from proxy.core.bodies.quotes import stands_in_quotes


@pytest.mark.parametrize(
    ("before", "behind", "final", "quoted"),
    [
        ('"a "', '" b"', False, True),
        ("'a '", "'", False, True),
        ('"a" ', ' "', False, True),
        ('"a"', "", True, False),
        ('"a"', "", False, None),
        ('"a"', "  ", False, None),
        ('"a"', "\n", False, False),
        ('"a"}', '"', False, False),
        ("", '"', False, False),
    ],
)
def test_a_tag_between_quotes(before: str, behind: str, final: bool, quoted: bool | None) -> None:
    assert stands_in_quotes(before, f"</x>{behind}", 4, final=final) is quoted
