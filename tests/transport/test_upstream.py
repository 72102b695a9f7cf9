from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from proxy.core.errors import UpstreamError
from proxy.transport.address import Proxies
from proxy.transport.failures import UNREACHABLE
from proxy.transport.upstream import Upstream
from tests.support.servers import Exchange, Step, answer, head, raw, refusing_url, scripted_server, silent, stream

CERTIFICATE = Path(__file__).parents[2] / "fixtures" / "tls" / "localhost.pem"


async def failure(upstream: Upstream, url: str, method: str = "POST") -> UpstreamError:
    with pytest.raises(UpstreamError) as caught:
        await upstream.open(method, url, body=b"{}")
    return caught.value


async def test_bytes_go_and_come_as_they_are(upstream: Upstream) -> None:
    body = bytes(range(256))
    async with scripted_server(answer(body)) as server:
        reply = await upstream.open("PUT", f"{server.url}/v1/a%2Fb:c?x=1&y=%20", body=body)
        assert await reply.read() == body
        [request] = server.requests
        assert (request.method, request.target) == ("PUT", "/v1/a%2Fb:c?x=1&y=%20")
        assert request.body == body


async def test_a_large_body_goes_whole(upstream: Upstream) -> None:
    body = bytes(range(256)) * 12_000
    async with scripted_server(answer()) as server:
        for _ in range(2):
            await (await upstream.open("POST", server.url, body=body)).read()
        assert [request.body == body for request in server.requests] == [True, True]
        assert server.requests[0].header("content-length") == str(len(body))
        assert server.requests[0].header("transfer-encoding") is None


@pytest.mark.parametrize(("length", "framing"), [(6, ("6", None)), (None, (None, "chunked"))])
async def test_a_body_that_comes_in_pieces(
    upstream: Upstream, length: int | None, framing: tuple[str | None, str | None]
) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b"abc"
        yield b"def"

    async with scripted_server(answer()) as server:
        await (await upstream.open("POST", server.url, body=pieces(), length=length)).read()
        [request] = server.requests
        assert (request.header("content-length"), request.header("transfer-encoding")) == framing
        assert request.body == (b"abcdef" if length else b"")  # the scripted server does not read chunks


async def test_a_request_without_a_body(upstream: Upstream) -> None:
    async with scripted_server(answer()) as server:
        await (await upstream.open("GET", server.url)).read()
        assert server.requests[0].header("content-type") is None
        assert server.requests[0].header("content-length") in (None, "0")


async def test_headers_that_are_left_open(upstream: Upstream) -> None:
    async with scripted_server(answer()) as server:
        await (await upstream.open("POST", server.url, body=b"{}")).read()
        [request] = server.requests
        assert request.header("content-type") == "application/json"
        assert request.header("user-agent") == "toolgraft"
        assert request.header("accept-encoding") == "identity"
        assert request.header("authorization") is None


async def test_headers_of_the_caller(upstream: Upstream) -> None:
    headers = [
        ("Content-Type", "text/plain"),
        ("User-Agent", "me"),
        ("Authorization", "Bearer key"),
        ("X-Title", "Grüße 東京"),
        ("Accept-Encoding", "br"),
        ("Expect", "100-continue"),
        ("Connection", "close, x-title"),
        ("Host", "else.example"),
        ("Content-Length", "99"),
        ("Transfer-Encoding", "chunked"),
    ]
    async with scripted_server(answer()) as server:
        await (await upstream.open("POST", server.url, headers=headers, body=b"{}")).read()
        await (await upstream.open("POST", server.url, headers=dict(headers[:2]), body=b"{}")).read()
        first, second = server.requests
        assert first.header("content-type") == second.header("content-type") == "text/plain"
        assert first.header("user-agent") == second.header("user-agent") == "me"
        assert first.header("authorization") == "Bearer key"
        assert (first.header("x-title") or "").encode("latin-1").decode() == "Grüße 東京"
        assert first.header("accept-encoding") == "identity"
        assert first.header("expect") is first.header("transfer-encoding") is None
        assert first.header("host") == server.url.removeprefix("http://")
        assert first.body == b"{}"
        assert server.connections == 1


async def test_credentials_of_the_url_are_sent_unless_there_is_a_key(upstream: Upstream) -> None:
    async with scripted_server(answer()) as server:
        url = server.url.replace("http://", "http://user:pass@")
        await (await upstream.open("POST", url)).read()
        await (await upstream.open("POST", url, headers={"Authorization": "Bearer key"})).read()
        assert [request.header("authorization") for request in server.requests] == ["Basic dXNlcjpwYXNz", "Bearer key"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_nobody_listens(upstream: Upstream, host: str) -> None:
    url = refusing_url().replace("127.0.0.1", host)
    error = await failure(upstream, f"{url}/v1/chat/completions")
    assert f"The backend at {url}/v1/chat/completions cannot be reached: connection refused" in error.message
    assert (error.status, error.code, error.retryable) == (502, UNREACHABLE, True)


@pytest.mark.parametrize(
    ("step", "code"),
    [
        (raw(), "backend_closed"),
        (raw(end="reset"), "backend_closed"),
        (raw(head(200, {})[:-2]), "backend_closed"),
        (raw(b"<html>hello</html>\r\n\r\n"), "backend_not_http"),
        (raw(b"\x15\x03\x01\x00\x02\x02\x16"), "backend_not_http"),
        (raw(head(200, {"x-long": "x" * 70_000})), "backend_not_http"),
        (raw(head(101, {"upgrade": "x", "connection": "upgrade"}), end="hang"), "backend_not_http"),
        (raw(head(600, {}), end="hang"), "backend_not_http"),
    ],
)
async def test_no_answer_or_none_that_can_be_read(upstream: Upstream, step: Step, code: str) -> None:
    async with scripted_server(step) as server:
        error = await failure(upstream, f"{server.url}/v1")
        assert f"{server.url}/v1" in error.message
        assert (error.status, error.code) == (502, code)
        await server.until(lambda: server.connections_open == 0)


async def test_a_redirect_is_not_followed(upstream: Upstream) -> None:
    moved = head(307, {"location": "/v1/else?key=secret", "content-length": "10"})
    async with scripted_server(raw(moved, end="hang")) as server:
        error = await failure(upstream, f"{server.url}/v1")
        assert f"to {server.url}/v1/else (status 307)" in error.message
        assert len(server.requests) == 1
        await server.until(lambda: server.connections_open == 0)


async def test_other_answers_of_the_three_hundreds_are_answers(upstream: Upstream) -> None:
    async with (
        scripted_server(raw(head(304, {"etag": "x"}), end="keep")) as server,
        await upstream.open("GET", server.url) as reply,
    ):
        assert reply.status == 304


async def test_a_content_coding_that_is_not_known(upstream: Upstream) -> None:
    async with scripted_server(stream(b"??", headers={"content-encoding": "br"}, end="hang")) as server:
        assert "'br' that cannot be read" in (await failure(upstream, server.url)).message
        await server.until(lambda: server.connections_open == 0)


async def test_what_cannot_be_sent(upstream: Upstream) -> None:
    async with scripted_server(answer()) as server:
        with pytest.raises(UpstreamError, match="cannot be sent") as caught:
            await upstream.open("POST", server.url, headers={"x-one": "1\r\nx-two: 2"})
        assert caught.value.retryable is False
        assert server.requests == []
    assert (await failure(upstream, "nonsense")).code == "backend_bad_url"


@pytest.mark.parametrize("body", [b"{}", bytes(20_000_000)])
async def test_cancelling_before_the_first_byte_closes_the_connection(upstream: Upstream, body: bytes) -> None:
    async with scripted_server(silent, read_bodies=False) as server:
        opening = asyncio.create_task(upstream.open("POST", server.url, body=body))
        await server.until(lambda: bool(server.requests))
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await server.until(lambda: server.connections_open == 0)


@pytest.mark.parametrize(
    ("limits", "step", "what"),
    [
        ({"first_byte_timeout": 0.05}, silent, "the first byte of its reply within 0.05 seconds"),
        ({"first_byte_timeout": 0.05}, stream(end="hang"), "the first byte of its reply within 0.05 seconds"),
        ({"idle_timeout": 0.05}, stream(b"1", end="hang"), "more of its reply within 0.05 seconds"),
        ({"total_timeout": 0.05}, silent, "the whole of its reply within 0.05 seconds"),
        ({"total_timeout": 0.05}, stream(b"1", end="hang"), "the whole of its reply within 0.05 seconds"),
    ],
)
async def test_time_limits(limits: dict[str, float], step: Step, what: str) -> None:
    async with (
        scripted_server(step) as server,
        Upstream(proxies=Proxies({}), **limits) as upstream,  # type: ignore[arg-type]
    ):
        with pytest.raises(UpstreamError, match=what) as caught:
            await (await upstream.open("POST", server.url)).read()
        assert (caught.value.status, caught.value.code) == (504, "backend_timeout")
        await server.until(lambda: server.connections_open == 0)


async def test_a_server_that_never_completes_the_tls_handshake() -> None:
    async with scripted_server(silent) as server, Upstream(connect_timeout=0.05, proxies=Proxies({})) as upstream:
        error = await failure(upstream, server.url.replace("http://", "https://"))
        assert "no connection within 0.05 seconds" in error.message
        assert error.code == UNREACHABLE


@pytest.fixture
def certified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATE)
    return context


async def test_an_unknown_certificate_is_refused(upstream: Upstream, certified: ssl.SSLContext) -> None:
    async with scripted_server(answer(), tls=certified) as server:
        error = await failure(upstream, server.url)
        assert error.code == "backend_tls"
        assert "cannot be trusted: self-signed certificate" in error.message
        assert server.requests == []


async def test_a_known_certificate_is_trusted(certified: ssl.SSLContext) -> None:
    tls = ssl.create_default_context(cafile=CERTIFICATE)
    async with (
        scripted_server(stream(b"1", b"2"), tls=certified) as server,
        Upstream(tls=tls, proxies=Proxies({})) as upstream,
    ):
        for _ in range(2):
            assert await (await upstream.open("POST", server.url)).read() == b"12"
        assert server.connections == 1


async def test_tls_where_there_is_none(upstream: Upstream) -> None:
    async def say_hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()
        writer.close()

    listener = await asyncio.start_server(say_hello, "127.0.0.1", 0)
    async with listener:
        port = listener.sockets[0].getsockname()[1]
        error = await failure(upstream, f"https://127.0.0.1:{port}/v1")
    assert error.code == "backend_tls"
    assert "plain HTTP" in error.message


async def test_no_tls_where_there_is_some(upstream: Upstream, certified: ssl.SSLContext) -> None:
    async with scripted_server(answer(), tls=certified) as server:
        error = await failure(upstream, server.url.replace("https://", "http://"))
        assert error.code in ("backend_closed", "backend_not_http")


async def test_a_proxy_leads_to_other_machines() -> None:
    async with scripted_server(answer(b"by proxy"), answer(b"straight")) as server:
        proxies = Proxies({"http": server.url.replace("http://", "http://user:pass@")})
        async with Upstream(proxies=proxies) as upstream:
            reply = await upstream.open("POST", "http://models.example:8080/v1", body=b"{}")
            assert await reply.read() == b"by proxy"
            reply = await upstream.open("POST", f"{server.url}/v1", body=b"{}")
            assert await reply.read() == b"straight"
        by_proxy, straight = server.requests
        assert by_proxy.target == "http://models.example:8080/v1"
        assert by_proxy.header("host") == "models.example:8080"
        assert by_proxy.header("proxy-authorization") == "Basic dXNlcjpwYXNz"
        assert by_proxy.header("authorization") is None
        assert straight.target == "/v1"
        assert straight.header("proxy-authorization") is None


async def test_a_loopback_backend_needs_no_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.setenv(name, refusing_url())
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with scripted_server(answer(b"{}")) as server, Upstream() as upstream:
        for host in ("127.0.0.1", "localhost"):
            reply = await upstream.open("POST", server.url.replace("127.0.0.1", host))
            assert await reply.read() == b"{}"
        error = await failure(upstream, "http://models.example/v1")
        assert "the proxy of the environment" in error.message
        assert error.code == UNREACHABLE


async def test_https_goes_through_a_tunnel(certified: ssl.SSLContext) -> None:
    async def tunnel(exchange: Exchange) -> None:
        assert exchange.request.header("proxy-authorization") == "Basic dXNlcjpwYXNz"
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        await exchange.send(b"HTTP/1.1 200 Connected\r\n\r\n")

        async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            while data := await source.read(65_536):
                target.write(data)
            target.close()

        await asyncio.gather(pump(exchange.reader, writer), pump(reader, exchange.writer), return_exceptions=True)
        writer.close()

    tls = ssl.create_default_context(cafile=CERTIFICATE)
    tls.check_hostname = False
    async with scripted_server(answer(b"{}"), tls=certified) as server, scripted_server(tunnel) as proxy:
        proxies = Proxies({"https": proxy.url.replace("http://", "http://user:pass@")})
        async with Upstream(tls=tls, proxies=proxies) as upstream:
            reply = await upstream.open("POST", "https://models.example/v1")
            assert await reply.read() == b"{}"
        assert proxy.requests[0].method == "CONNECT"
        assert proxy.requests[0].target == "models.example:443"
        assert server.requests[0].header("host") == "models.example"
        assert server.requests[0].header("proxy-authorization") is None


async def test_a_proxy_that_refuses() -> None:
    async with (
        scripted_server(answer(status=403)) as proxy,
        Upstream(proxies=Proxies({"https": proxy.url})) as upstream,
    ):
        error = await failure(upstream, "https://models.example/v1")
        assert f"the proxy of the environment, {proxy.url}, answered 403" in error.message


async def test_after_closing_nothing_is_sent(upstream: Upstream) -> None:
    async with scripted_server(answer()) as server:
        await upstream.aclose()
        assert "shutting down" in (await failure(upstream, server.url)).message
        assert server.connections == 0


async def test_nothing_is_left_behind(upstream: Upstream) -> None:
    before = asyncio.all_tasks()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: complaints.append(context))
    async with scripted_server(answer(b"{}"), stream(b"1", end="cut"), stream(b"1", end="hang"), silent) as server:
        await (await upstream.open("POST", server.url)).read()
        with pytest.raises(UpstreamError):
            await (await upstream.open("POST", server.url)).read()
        abandoned = await upstream.open("POST", server.url)
        assert await anext(abandoned) == b"1"
        await abandoned.aclose()
        opening = asyncio.create_task(upstream.open("POST", server.url, body=bytes(3_000_000)))
        await server.until(lambda: len(server.requests) == 4)
        opening.cancel()
        await asyncio.wait([opening])
        await upstream.aclose()
        await server.until(lambda: server.connections_open == 0)
    del abandoned, opening
    gc.collect()
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == before
    assert complaints == []
