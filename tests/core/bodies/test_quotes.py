import pytest

from proxy.core.bodies.quotes import closing_tags_in_quotes, in_string, may_be_in_string, stands_in_quotes


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
    ("line", "behind", "inside"),
    [("a = 'b", "'", True), ('f("', '"', True), ("a = 'b", '"', False), ("a", "'", False), ("a = 'b", "", False)],
)
def test_a_tag_in_a_string_of_its_line(line: str, behind: str, inside: bool) -> None:
    assert in_string(line, behind) is inside
    assert not inside or may_be_in_string(line)


def test_closing_tags_alone_in_quotes() -> None:
    assert closing_tags_in_quotes("a = '</x></y>'", 5)
    assert closing_tags_in_quotes("a = '</x></y>'", 5)
    assert not closing_tags_in_quotes("a = '</x></y>'", 9)
    assert not closing_tags_in_quotes("</x>", 0)
    assert not closing_tags_in_quotes("it's</x>'", 4)
