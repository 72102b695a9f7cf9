"""The same translator on the libraries that the product is built on, as they come: ``python -m tests.bench.bare PORT``.

starlette on uvicorn, and httpx2 over aiohttp. It prints its port. What it costs more than the floor is the libraries'
part of what the product costs.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import AsyncIterator

import aiohttp
import httpx2
import orjson
import uvicorn
from httpx_aiohttp.httpx2 import AiohttpTransport
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.bench.translator import Tokens, translated, whole

JSON = {"content-type": "application/json"}


def application(port: int) -> Starlette:
    """The translator in front of the backend at ``port``."""
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    clients: list[httpx2.AsyncClient] = []

    @contextlib.asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        async with httpx2.AsyncClient(transport=AiohttpTransport(client=session), timeout=None) as client:
            clients.append(client)
            yield

    async def chat(request: Request) -> Response:
        asked = orjson.loads(await request.body())
        body = translated(asked)
        if not asked.get("stream"):
            reply = await clients[0].post(url, content=body, headers=JSON)
            return Response(whole(reply.content), media_type="application/json")

        async def told() -> AsyncIterator[bytes]:
            tokens = Tokens()
            async with clients[0].stream("POST", url, content=body, headers=JSON) as reply:
                async for data in reply.aiter_raw():
                    if out := tokens.feed(data):
                        yield out

        return StreamingResponse(told(), media_type="text/event-stream")

    return Starlette(routes=[Route("/v1/chat/completions", chat, methods=["POST"])], lifespan=running)


class Server(uvicorn.Server):
    """Prints its port once it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(sockets[0].getsockname()[1] if sockets else "", flush=True)


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(application(int(sys.argv[1])), log_level="error", access_log=False)
    Server(config).run(sockets=[listening])
