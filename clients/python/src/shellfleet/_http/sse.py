"""Server-sent events. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """An event of a stream of the API. `id` is that of the newest event with one."""

    id: str
    type: str
    data: str


class SseParser:
    """Parses a stream of server-sent events piece by piece. An event counts when its empty line has arrived."""

    def __init__(self, last_id: str = "") -> None:
        self._rest = bytearray()
        self._scanned = 0
        self._id = last_id
        self._type = ""
        self._data: list[str] = []
        self._begun = False

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Yields the events that a piece completes."""
        self._rest += piece
        start = 0
        while (end := _LINE_END.search(self._rest, max(start, self._scanned))) is not None:
            # A carriage return at the end of what has arrived may be the first half of a line end.
            if end[0] == b"\r" and end.end() == len(self._rest):
                break
            line = self._rest[start : end.start()]
            start = self._scanned = end.end()
            event = self._take(line.decode("utf-8", "replace"))
            if event is not None:
                yield event
        del self._rest[:start]
        self._scanned = max(0, len(self._rest) - 1)

    def _take(self, line: str) -> ServerEvent | None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix("\ufeff")
        if line == "":
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, self._data = self._data, []
        kind, self._type = self._type or "message", ""
        return ServerEvent(self._id, kind, "\n".join(data)) if data else None
