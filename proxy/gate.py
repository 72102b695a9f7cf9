"""What every request passes that is not open to all: the name it asks for, its key, and how often that is used."""

from __future__ import annotations

from proxy.access import Hosts, Keys, is_loopback
from proxy.asgi import Exchange
from proxy.config import Config
from proxy.limits import Rate
from proxy.telemetry import RequestLog


class Gate:
    """Lets in the owners of ``keys``, each as often as ``rate`` allows, and who asks for one of ``hosts``."""

    def __init__(self, keys: Keys, rate: Rate | None = None, hosts: Hosts | None = None) -> None:
        self._keys = keys
        self._rate = rate
        self._hosts = hosts

    @classmethod
    def of(cls, config: Config) -> Gate:
        """The gate that is configured. Names count only where anything on this machine is let in."""
        only_local = is_loopback(config.host) and not config.client_keys
        return cls(
            Keys(config.client_keys),
            Rate(config.rate_limit) if config.rate_limit else None,
            Hosts(config.allowed_hosts) if only_local else None,
        )

    def admit(self, exchange: Exchange, log: RequestLog) -> None:
        """Note whose request it is. Raises ``ClientError`` (401, 403, 429)."""
        if self._hosts is not None:
            self._hosts.check(exchange.scope["headers"])
        log.client = self._keys.owner(exchange.scope["headers"])
        if self._rate is not None:
            exchange.extra += self._rate.take(log.client or _address(exchange))


def _address(exchange: Exchange) -> str:
    """Where a request comes from; of all that come over a socket file, or a proxy in front, it is the same."""
    client = exchange.scope.get("client")
    return client[0] if client else ""
