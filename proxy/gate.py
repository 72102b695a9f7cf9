"""What every request passes that is not open to all: the name it asks for, its key, and how often that is used."""

from __future__ import annotations

from collections.abc import Collection

from proxy.access import Hosts, Keys, is_loopback, network
from proxy.asgi import Exchange
from proxy.config import Config
from proxy.core.errors import ClientError
from proxy.limits import Rate
from proxy.telemetry import RequestLog


class Gate:
    """Lets in the owners of ``keys``, each as often as ``rate`` allows.

    Where no key is wanted, browsers are let in for pages of ``origins``, and for those that are at one of ``hosts``.
    ``only_local``: then nobody but this machine can come.
    """

    def __init__(
        self,
        keys: Keys,
        rate: Rate | None = None,
        hosts: Hosts | None = None,
        origins: Collection[str] = (),
        *,
        only_local: bool = False,
    ) -> None:
        self._only_local = only_local
        self._keys = keys
        self._origins = frozenset(origins)
        self._rate = rate
        self._hosts = hosts

    @classmethod
    def of(cls, config: Config, before: Gate | None = None) -> Gate:
        """The gate that is configured. Names count only where anybody is let in.

        ``before`` is the gate whose place it takes: what that has counted, by the same limit, still counts.
        """
        rate = Rate(config.rate_limit) if config.rate_limit else None
        if rate is not None and before is not None and before._rate is not None and before._rate.most == rate.most:
            rate = before._rate
        hosts = None if config.client_keys else Hosts(config.allowed_hosts)
        only_local = is_loopback(config.host)
        return cls(Keys(config.client_keys), rate, hosts, config.cors_origins, only_local=only_local)

    def admit(self, exchange: Exchange, log: RequestLog, *, counted: bool = True) -> None:
        """Note whose request it is, and count it. Raises ``ClientError`` (401, 403, 429)."""
        if self._hosts is not None:
            self._check_page(exchange, self._hosts)
        log.client = self._keys.owner(exchange.scope["headers"])
        if counted and self._rate is not None:
            exchange.extra += self._rate.take(log.client or _address(exchange))

    def trusts(self, exchange: Exchange, log: RequestLog) -> bool:
        """Whether who asks may hear what is configured: the owner of a key, or where none is wanted this machine."""
        try:
            self.admit(exchange, log, counted=False)
        except ClientError:
            return False
        return log.client is not None or self._only_local

    def _check_page(self, exchange: Exchange, hosts: Hosts) -> None:
        """Raise ``ClientError`` for what may come from a page that is not known.

        Browsers name the page in all but GET and HEAD. Of another site it could not read the answer, but make the model
        work, and what it asks for be done.
        """
        origin = exchange.header("origin")
        if self._origins & {origin, "*"} if origin else exchange.method not in ("GET", "HEAD"):
            return
        hosts.check(exchange.scope["headers"])
        if origin is not None and _is_elsewhere(origin, exchange):
            raise ClientError(
                f"Pages of {origin} may not use this proxy. Name the origin in `cors_origins` if they should.",
                status=403,
                type="permission_error",
                code="origin_not_allowed",
            )


def _is_elsewhere(origin: str, exchange: Exchange) -> bool:
    """Whether a page is another one than the proxy's own. Where the browser does not say, the web is meant."""
    site = exchange.header("sec-fetch-site")
    if site is not None:
        return site in ("cross-site", "same-site")
    scheme, _, host = origin.partition("://")
    return scheme in ("http", "https", "null") and host != exchange.header("host")


def _address(exchange: Exchange) -> str:
    """Where a request comes from; of all that come over a socket file, or a proxy in front, it is the same."""
    client = exchange.scope.get("client")
    return network(client[0]) if client else ""
