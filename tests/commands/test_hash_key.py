from __future__ import annotations

from click.testing import CliRunner

from proxy import access
from proxy.cli import main


def run(*arguments: str, given: str = "") -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["hash-key", *arguments], input=given)
    return result.exit_code, result.stdout, result.stderr


def test_a_key_is_read_and_only_its_hash_is_printed() -> None:
    key = "tg-0123456789abcdef"
    assert run(given=f" {key} \nmore\n") == (0, access.hash_key(key.encode()) + "\n", "")


def test_a_new_key_is_printed_with_its_hash() -> None:
    code, out, _ = run("--new")
    key, hashed = out.split()
    assert code == 0
    assert len(key) > 32
    assert hashed == access.hash_key(key.encode())
    assert run("--new")[1] != out


def test_a_short_key_is_warned_of() -> None:
    code, out, told = run(given="secret\n")
    assert code == 0
    assert access.is_hash(out.strip())
    assert "may be guessed" in told


def test_no_key_is_an_error() -> None:
    code, out, told = run(given="\n")
    assert code == 2
    assert "no key" in told
    assert not out
