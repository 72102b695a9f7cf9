"""The items of late answers, for clients that refer to them instead of sending them again."""

from __future__ import annotations

from collections import OrderedDict

from proxy.core.model import Json
from proxy.wire import jsonio

MOST_BYTES = 32 * 1024 * 1024
"""JSON of items that is kept: some ten thousand answers of an agent. The oldest go first."""


class Memory:
    """Items by their ids, in this process alone and for a while.

    The Vercel AI SDK, unless it is told ``store: false``, replays the messages and the reasoning of a conversation as
    references to their ids. What one client was told is no other's to refer to: a client is the owner of a key, None
    where no key is wanted.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._items: OrderedDict[tuple[str | None, str], bytes] = OrderedDict()

    def keep(self, client: str | None, item: Json) -> None:
        """Remember ``item``, which ``client`` is told, by its ``id``."""
        data, key = jsonio.dumps(item), (client, item["id"])
        self._size += len(data) - len(self._items.pop(key, b""))
        self._items[key] = data
        while self._size > self._most:
            self._size -= len(self._items.popitem(last=False)[1])

    def recall(self, client: str | None, item_id: str) -> Json:
        """The item that ``client`` was told, None if it is not known. What is asked for is kept longer."""
        key = client, item_id
        data = self._items.get(key)
        if data is None:
            return None
        self._items.move_to_end(key)
        return jsonio.loads(data)
