"""A pass-through between the proxy and the engine that keeps what went by: what the model saw and what it wrote."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import urlsplit

from proxy.core.events import TextDelta
from proxy.core.model import Json
from proxy.wire.sse import frames_of
from proxy.wire.upstream_chat import ChunkDecoder, decode_reply


@dataclass(frozen=True, slots=True)
class Exchange:
    """One chat request that went by: the messages that the model saw, whether a grammar held it, and its text."""

    messages: tuple[Json, ...]
    grammar: bool
    wrote: str


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Nothing: a connection that broke is told by the proxy, and the terminal belongs to the demo."""


class Recorder:
    """An HTTP server before the one at ``target``. It passes answers on only when they are whole."""

    def __init__(self, target: str) -> None:
        self.exchanges: list[Exchange] = []
        recorder, netloc = self, urlsplit(target).netloc

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers.get("content-length", 0)))
                connection = HTTPConnection(netloc)
                connection.request(self.command, self.path, sent, {"content-type": "application/json"})
                reply = connection.getresponse()
                content, kind = reply.read(), reply.headers.get("content-type", "")
                connection.close()
                if self.path.endswith("/chat/completions") and reply.status == 200:
                    request = json.loads(sent)
                    wrote = _text(content, kind)
                    recorder.exchanges.append(Exchange(tuple(request["messages"]), "grammar" in request, wrote))
                self.send_response(reply.status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST  # noqa: N815 (the base class's way of naming)

            def log_message(self, *args: object) -> None:
                """Nothing, too."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Recorder:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _text(content: bytes, kind: str) -> str:
    """What the model wrote, from an answer that was streamed or not."""
    if kind.startswith("text/event-stream"):
        chunks = ChunkDecoder()
        events = [event for frame in frames_of(content) for event in chunks.feed(frame)]
    else:
        events = decode_reply(content)
    return "".join(event.text for event in events if isinstance(event, TextDelta))
