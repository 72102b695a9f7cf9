"""The proxy as a part of another program: under any server that speaks ASGI, alone or mounted in an application."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from starlette.types import Receive, Scope, Send

from proxy.app import App, with_cors
from proxy.config import Config


class Proxy(App):
    """The proxy for one configuration, as an ASGI application.

    A server begins and ends its lifespan by itself. An application that it is mounted in does not: there
    :meth:`running` belongs into the lifespan of that application. Under a path the API is under that path.
    """

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self._serve = with_cors(super().__call__, config)
        self._runs = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request. Raises ``RuntimeError`` outside of :meth:`running`, which is a mistake of the program."""
        if scope["type"] == "http":
            if not self._runs:
                raise RuntimeError(
                    "The proxy is not running. Mounted in an application, it needs `async with proxy.running():` in "
                    "the lifespan of that application."
                )
            _leave(scope)
        await self._serve(scope, receive, send)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The block in which requests can be answered: connections to backends are kept open in it."""
        async with super().running():
            self._runs += 1
            try:
                yield
            finally:
                self._runs -= 1


def create_app(config: Config) -> Proxy:
    """The proxy for ``config``. It opens nothing before its lifespan, or :meth:`Proxy.running`, has begun.

    ``host``, ``port`` and ``workers`` are up to whoever serves it; without keys for clients, ``host`` still says
    whether only this machine can reach it, which decides whether the inspector is on by itself. Raises ``ConfigError``
    for backends that cannot be.
    """
    return Proxy(config)


def _leave(scope: Scope) -> None:
    """Take the path that an application is mounted at off the path of a request."""
    root: str = scope.get("root_path", "")
    if root and f"{scope['path']}/".startswith(f"{root}/"):
        scope["path"] = scope["path"][len(root) :] or "/"
        steps = (scope.get("raw_path") or b"").split(
            b"/", root.count("/") + 1
        )  # as the client wrote them, maybe with %
        scope["raw_path"] = b"/" + steps[-1]
        scope["root_path"] = ""
