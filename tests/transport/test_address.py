from __future__ import annotations

from pathlib import Path

import pytest

from proxy.core.errors import UpstreamError
from proxy.transport import address
from proxy.transport.address import Proxies, in_container, is_this_machine, locate


def test_secrets_of_a_url_are_not_shown() -> None:
    found = locate("https://us%40er:p%3Ass@models.example:8443/v1/a%2Fb?key=secret#part")
    assert found.shown == "https://models.example:8443/v1/a%2Fb"
    assert str(found.url) == "https://models.example:8443/v1/a%2Fb?key=secret"
    assert found.authorization == "Basic dXNAZXI6cDpzcw=="
    assert found.tls


def test_a_url_without_credentials_authorizes_nothing() -> None:
    assert locate("http://models.example/v1").authorization is None


@pytest.mark.parametrize(
    "text", ["", "models.example/v1", "ftp://models.example/", "http:///v1", "http://h:99999/", "h\0"]
)
def test_what_is_no_http_url_is_refused(text: str) -> None:
    with pytest.raises(UpstreamError, match="cannot be used") as caught:
        locate(text)
    assert caught.value.retryable is False


def test_a_refused_url_does_not_show_its_secrets_either() -> None:
    with pytest.raises(UpstreamError) as caught:
        locate("ftp://user:secret@models.example/?key=secret")
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST",
        "localhost.",
        "me.localhost",
        "127.0.0.1",
        "127.9.9.9",
        "::1",
        "::ffff:127.0.0.1",
        "0.0.0.0",
    ],
)
def test_loopback(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize(
    "host", ["example.com", "localhost.example.com", "128.0.0.1", "192.168.0.1", "::2", "127.0.0.1.example"]
)
def test_not_loopback(host: str) -> None:
    assert not is_this_machine(host)


def test_containers_are_known_by_the_file_that_their_engine_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    monkeypatch.setattr(address, "_CONTAINER_MARKS", (str(tmp_path / "none"), str(mark)))
    assert not in_container()
    mark.touch()
    assert in_container()


PROXIES = {"http": "http://proxy.example:3128", "https": "http://secure.example:3128"}


@pytest.mark.parametrize(
    ("url", "proxy"),
    [
        ("http://models.example/v1", "http://proxy.example:3128"),
        ("https://models.example/v1", "http://secure.example:3128"),
        ("http://192.168.0.9:8080/v1", "http://proxy.example:3128"),
        ("http://localhost:8080/v1", None),
        ("http://127.0.0.1:8080/v1", None),
        ("https://[::1]:8080/v1", None),
        ("http://0.0.0.0:8080/v1", None),
        ("http://host.docker.internal:8080/v1", None),
    ],
)
def test_a_proxy_leads_to_other_machines_only(url: str, proxy: str | None) -> None:
    assert Proxies(PROXIES).choose(locate(url)) == proxy


@pytest.mark.parametrize(
    ("exempt", "url"),
    [
        ("*", "http://models.example/v1"),
        ("models.example", "http://models.example/v1"),
        ("Example", "http://models.example/v1"),
        (".example", "http://models.example/v1"),
        ("*.example", "http://models.example/v1"),
        ("other.example, models.example", "https://models.example/v1"),
        ("models.example:8080", "http://models.example:8080/v1"),
        ("models.example:443", "https://models.example/v1"),
        ("192.168.0.9", "http://192.168.0.9:8080/v1"),
        ("192.168.0.9:8080", "http://192.168.0.9:8080/v1"),
        ("192.168.0.0/16", "http://192.168.0.9:8080/v1"),
        ("fd00::/8", "http://[fd00::9]:8080/v1"),
    ],
)
def test_no_proxy(exempt: str, url: str) -> None:
    assert Proxies({**PROXIES, "no": exempt}).choose(locate(url)) is None


@pytest.mark.parametrize("exempt", ["", "els.example", "models.example:81", "10.0.0.0/8", "models.example.org"])
def test_no_proxy_for_others_changes_nothing(exempt: str) -> None:
    assert Proxies({**PROXIES, "no": exempt}).choose(locate("http://models.example/v1")) == PROXIES["http"]


def test_one_proxy_for_all_and_one_without_a_scheme() -> None:
    assert Proxies({"all": "proxy.example:1"}).choose(locate("https://models.example/")) == "http://proxy.example:1"
    assert Proxies({}).choose(locate("https://models.example/")) is None


def test_a_proxy_that_cannot_work_is_said_to_be_one() -> None:
    proxies = Proxies({"all": "socks5://user:secret@proxy.example:1080"})
    assert proxies.choose(locate("http://localhost/v1")) is None
    with pytest.raises(UpstreamError, match="NO_PROXY") as caught:
        proxies.choose(locate("http://models.example/v1"))
    assert "http://models.example/v1" in caught.value.message
    assert "secret" not in caught.value.message


def test_the_environment_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "models.example")
    proxies = Proxies()
    assert proxies.choose(locate("http://elsewhere.example/")) == "http://proxy.example:3128"
    assert proxies.choose(locate("http://models.example/")) is None
    assert proxies.choose(locate("https://elsewhere.example/")) is None
