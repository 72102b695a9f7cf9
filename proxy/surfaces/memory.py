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
    references to their ids.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._size = 0
        self._items: OrderedDict[str, bytes] = OrderedDict()

    def keep(self, item: Json) -> None:
        """Remember ``item`` by its ``id``."""
        data = jsonio.dumps(item)
        self._size += len(data) - len(self._items.pop(item["id"], b""))
        self._items[item["id"]] = data
        while self._size > self._most:
            self._size -= len(self._items.popitem(last=False)[1])

    def recall(self, item_id: str) -> Json:
        """The item, None if it is not known. What is asked for is kept longer."""
        data = self._items.get(item_id)
        if data is None:
            return None
        self._items.move_to_end(item_id)
        return jsonio.loads(data)
