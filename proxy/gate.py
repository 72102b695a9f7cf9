"""What every request passes that is not open to all: its key, and how often the key is used."""

from __future__ import annotations

from proxy.access import Keys
from proxy.asgi import Exchange
from proxy.limits import Rate
from proxy.telemetry import RequestLog


class Gate:
    """Lets in the owners of ``keys``, each as often as ``rate`` allows."""

    def __init__(self, keys: Keys, rate: Rate | None = None) -> None:
        self._keys = keys
        self._rate = rate

    def admit(self, exchange: Exchange, log: RequestLog) -> None:
        """Note whose request it is. Raises ``ClientError`` (401, 429)."""
        log.client = self._keys.owner(exchange.scope["headers"])
        if self._rate is not None:
            exchange.extra += self._rate.take(log.client or _address(exchange))


def _address(exchange: Exchange) -> str:
    """Where a request comes from; of all that come over a socket file, or a proxy in front, it is the same."""
    client = exchange.scope.get("client")
    return client[0] if client else ""
