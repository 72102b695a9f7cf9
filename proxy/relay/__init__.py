"""The pump between a client's request and a backend's reply."""

from proxy.relay.answers import Ask, ByteReply, EventReply
from proxy.relay.relay import Relay
from proxy.relay.routes import Routes

__all__ = ["Ask", "ByteReply", "EventReply", "Relay", "Routes"]
