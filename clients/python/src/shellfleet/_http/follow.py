"""Streams of server-sent events that continue over broken connections."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from .._wire import Json
from ..errors import ShellfleetError
from .api import Api, Query, from_problem, parse_json
from .connection import Broken
from .sse import SseParser

_FIRST_DELAY_S = 0.05
_MOST_DELAY_S = 2.0


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """An event of a stream of the API, with its data."""

    id: str
    type: str
    data: Json


# F1. The next connection continues after the last event that the caller has got, so none is lost or doubled. Events of
#     which only a part arrived were not yielded, and arrive again.
# F2. A stream ends when the caller stops, when the server says that there is nothing more (204), or when nothing
#     has arrived on any connection for `retry_s`.
async def follow(
    api: Api, path: str, *, after: str | None = None, query: Query | None = None
) -> AsyncGenerator[StreamEvent]:
    """Yields the events of a stream, from its beginning or after the event `after`. Raises ShellfleetError."""
    last = after or ""
    delay = _FIRST_DELAY_S
    failing_since: float | None = None
    while True:
        failure: ShellfleetError | None = None
        try:
            headers = {"accept": "text/event-stream", **({"last-event-id": last} if last else {})}
            async with api.send("GET", path, query=query, headers=headers) as response:
                if response.status == 204:
                    return
                parser = SseParser(last)
                async with aclosing(response.pieces()) as pieces:
                    async for piece in pieces:
                        delay, failing_since = _FIRST_DELAY_S, None
                        for event in parser.feed(piece):
                            last = event.id
                            if event.type == "problem":
                                failure = from_problem(parse_json(event.data))
                                break
                            yield StreamEvent(event.id, event.type, parse_json(event.data))
        except Broken as error:
            failure = api.unreachable(error)
        if failure is not None and failure.code != "QUEUE_UNAVAILABLE":
            raise failure
        failing_since = failing_since or time.monotonic()
        if failure is not None and time.monotonic() - failing_since > api.retry_s:
            raise failure
        await api.pause(delay)
        delay = min(delay * 2, _MOST_DELAY_S)
