import pytest

from proxy.core.bodies.quotes import closing_tags_in_quotes, in_string, stands_in_quotes


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


@pytest.mark.parametrize(
    ("before", "behind", "final", "inside"),
    [
        ("a = 'b", "'", False, True),
        ('f("', '"', False, True),
        ("a = 'b", '"', False, False),
        ("a", "'", False, False),
        ("'\na", "'", False, False),
        ("a = 'b", "", True, False),
        ("a = 'b", "", False, None),
        ("a", "", False, False),
    ],
)
def test_a_tag_in_a_string_of_its_line(before: str, behind: str, final: bool, inside: bool | None) -> None:
    assert in_string(before, f"</x>{behind}", 4, final=final) is inside


def test_closing_tags_alone_in_quotes() -> None:
    assert closing_tags_in_quotes("a = '</x></y>'", 5)
    assert closing_tags_in_quotes('a = " </x> </y>"', 6) is False  # the quote must stand right before it
    assert not closing_tags_in_quotes("a = '</x></y>'", 9)
    assert not closing_tags_in_quotes("</x>", 0)
    assert not closing_tags_in_quotes("it's</x>'", 4)
