"""What every request passes that is not open to all: the name it asks for, its key, and how often that is used."""

from __future__ import annotations

from collections.abc import Collection

from proxy.access import Hosts, Keys, is_loopback
from proxy.asgi import Exchange
from proxy.config import Config
from proxy.core.errors import ClientError
from proxy.limits import Rate
from proxy.telemetry import RequestLog


class Gate:
    """Lets in the owners of ``keys``, each as often as ``rate`` allows, and who asks for one of ``hosts``."""

    def __init__(
        self, keys: Keys, rate: Rate | None = None, hosts: Hosts | None = None, origins: Collection[str] = ()
    ) -> None:
        self._keys = keys
        self._origins = frozenset(origins)
        self._rate = rate
        self._hosts = hosts

    @classmethod
    def of(cls, config: Config, before: Gate | None = None) -> Gate:
        """The gate that is configured. Names count only where anything on this machine is let in.

        ``before`` is the gate whose place it takes: what that has counted, by the same limit, still counts.
        """
        only_local = is_loopback(config.host) and not config.client_keys
        rate = Rate(config.rate_limit) if config.rate_limit else None
        if rate is not None and before is not None and before._rate is not None and before._rate.most == rate.most:
            rate = before._rate
        hosts = Hosts(config.allowed_hosts) if only_local else None
        return cls(Keys(config.client_keys), rate, hosts, config.cors_origins)

    def admit(self, exchange: Exchange, log: RequestLog) -> None:
        """Note whose request it is. Raises ``ClientError`` (401, 403, 429)."""
        if self._hosts is not None:
            self._hosts.check(exchange.scope["headers"])
            self._check_origin(exchange)
        log.client = self._keys.owner(exchange.scope["headers"])
        if self._rate is not None:
            exchange.extra += self._rate.take(log.client or _address(exchange))

    def _check_origin(self, exchange: Exchange) -> None:
        """A page of another site could not read the answer, but make the model work, and what it asks for be done."""
        origin = exchange.header("origin")
        foreign = exchange.header("sec-fetch-site") in ("cross-site", "same-site")
        if foreign and origin is not None and not self._origins & {origin, "*"}:
            raise ClientError(
                f"Pages of {origin} may not use this proxy. Name the origin in `cors_origins` if they should.",
                status=403,
                type="permission_error",
                code="origin_not_allowed",
            )


def _address(exchange: Exchange) -> str:
    """Where a request comes from; of all that come over a socket file, or a proxy in front, it is the same."""
    client = exchange.scope.get("client")
    return client[0] if client else ""
