"""Where a request goes: the URL without its secrets, whether that is this machine, and which proxy leads there."""

from __future__ import annotations

import base64
import ipaddress
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import httpx2

from proxy.core.errors import UpstreamError

_CONTAINER_MARKS = ("/.dockerenv", "/run/.containerenv")
_CONTAINER_HOSTS = frozenset({"host.docker.internal", "host.containers.internal"})
"""The names under which Docker and Podman offer a container the machine that it runs on."""


@dataclass(frozen=True, slots=True)
class Address:
    """A URL ready to be requested.

    ``url`` has no credentials, nor has ``text``, which is the same; those that the URL held are the header value
    ``authorization``. ``shown`` is for messages: without credentials and without the query, which may hold a key.
    ``tls``: the connection is encrypted. ``loopback``: this very machine (or container). ``local``: no proxy may lie on
    the way, because it could not know the name or would lead to itself.
    """

    url: httpx2.URL
    text: str
    shown: str
    authorization: str | None
    tls: bool
    loopback: bool
    local: bool


@lru_cache(maxsize=256)
def locate(text: str) -> Address:
    """Take ``text`` apart. Raises ``UpstreamError`` when it is not an HTTP URL."""
    try:
        url = httpx2.URL(text)
    except httpx2.InvalidURL as exc:
        raise UpstreamError(
            f"The backend's URL cannot be used: {exc}", code="backend_bad_url", retryable=False
        ) from exc
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
        raise UpstreamError(
            f"The backend's URL {show(url)} cannot be used: it must begin with http:// or https:// and name a host.",
            code="backend_bad_url",
            retryable=False,
        )
    authorization = None
    if url.userinfo:
        authorization = "Basic " + base64.b64encode(f"{url.username}:{url.password}".encode()).decode("ascii")
    loopback = is_this_machine(url.host)
    bare = url.copy_with(username=None, password=None, fragment=None)
    return Address(
        url=bare,
        text=str(bare),
        shown=show(url),
        authorization=authorization,
        tls=url.scheme == "https",
        loopback=loopback,
        local=loopback or url.host in _CONTAINER_HOSTS,
    )


def show(url: httpx2.URL) -> str:
    """``url`` without what may be secret: credentials, query and fragment."""
    return str(url.copy_with(username=None, password=None, query=None, fragment=None))


def is_this_machine(host: str) -> bool:
    """Whether ``host`` is this machine: ``localhost`` and its subdomains (RFC 6761), 127.0.0.0/8, ``::1``.

    The unspecified addresses count, which is why ``proxy.access`` has a check of its own for where the proxy listens:
    servers print ``0.0.0.0`` as theirs, and connecting there leads to this machine.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified


def in_container() -> bool:
    """Whether this process runs in a Docker or Podman container, where ``localhost`` is the container."""
    return any(Path(mark).exists() for mark in _CONTAINER_MARKS)


class Proxies:
    """The HTTP proxies of the environment: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, and NO_PROXY for what needs none.

    ``settings`` is what ``urllib.request.getproxies_environment`` gives; by default it is asked, once.
    NO_PROXY names hosts with their subdomains, ``host:port``, addresses and networks (``192.168.0.0/16``), or ``*``.
    """

    def __init__(self, settings: Mapping[str, str] | None = None) -> None:
        found = urllib.request.getproxies_environment() if settings is None else settings
        self._by_scheme = {scheme: found.get(scheme) or found.get("all") for scheme in ("http", "https")}
        exempt = [entry.strip().lower() for entry in found.get("no", "").split(",")]
        self._exempt_networks = [network for entry in exempt if (network := _network(entry))]
        self._exempt_names = [entry.removeprefix("*").removeprefix(".") for entry in exempt if entry not in ("", "*")]
        self._exempts_all = "*" in exempt

    def choose(self, address: Address) -> str | None:
        """The proxy's URL for ``address``, None to go straight. Raises ``UpstreamError`` for one that cannot work."""
        proxy = self._by_scheme["https" if address.tls else "http"]
        if not proxy or address.local or self._exempts(address.url):
            return None
        if "://" not in proxy:
            proxy = f"http://{proxy}"
        if not proxy.startswith(("http://", "https://")):
            raise UpstreamError(
                f"The backend at {address.shown} lies behind the proxy of the environment, which is not an HTTP proxy. "
                "Set HTTP_PROXY and HTTPS_PROXY to one, or name the backend's host in NO_PROXY.",
                code="backend_bad_proxy",
                retryable=False,
            )
        return proxy

    def _exempts(self, url: httpx2.URL) -> bool:
        if self._exempts_all:
            return True
        try:
            address = ipaddress.ip_address(url.host)
        except ValueError:
            pass
        else:
            if any(address in network for network in self._exempt_networks):
                return True
        port = url.port or (443 if url.scheme == "https" else 80)
        names = (url.host, f"{url.host}:{port}")
        return any(name == entry or name.endswith(f".{entry}") for entry in self._exempt_names for name in names)


def _network(entry: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    try:
        return ipaddress.ip_network(entry.strip("[]"), strict=False)
    except ValueError:
        return None
