"""The connections of a client."""

from __future__ import annotations

import asyncio
import ssl
import time

from .._settings import Endpoint
from ..errors import unavailable
from .connection import Broken, Connection, Response
from .message import Request

_CONNECT_WITHIN_S = 10.0
_IDLE_AT_MOST = 64
_IDLE_FOR_S = 50.0


# P1. Every connection of the client is in `_open` until its socket is closed, so that `close` leaves none behind.
# P2. A request that can be repeated is sent again when a connection that had been idle turns out to be closed.
class Pool:
    """Connections that are kept alive between requests. There is no limit to those that are in use at once."""

    def __init__(self, endpoint: Endpoint, context: ssl.SSLContext | None) -> None:
        self._endpoint = endpoint
        self._context = context
        self._idle: list[tuple[Connection, float]] = []
        self._open: set[Connection] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._closed = False
        self._common = {
            "host": endpoint.authority,
            "authorization": f"Bearer {endpoint.key}",
            "user-agent": "shellfleet-python",
        }

    async def exchange(self, request: Request, silence_s: float | None) -> Response:
        """Sends a request on some connection, and returns its response. Raises Broken."""
        while True:
            connection = (self._take_idle() if request.repeatable else None) or await self._connect()
            was_idle = connection.uses > 0
            try:
                response = await connection.exchange(request, self._common, silence_s)
            except Broken:
                self._drop(connection)
                if was_idle and not self._closed:
                    continue
                raise
            except BaseException:
                self._drop(connection)
                raise
            if response.ended:
                self._return(connection, response.is_reusable)
            else:
                response.on_end = self._return
            return response

    def _take_idle(self) -> Connection | None:
        while self._idle:
            connection, since = self._idle.pop()
            if connection.is_usable and time.monotonic() - since < _IDLE_FOR_S:
                return connection
            self._drop(connection)
        return None

    async def _connect(self) -> Connection:
        if self._closed:
            raise closed_here()
        endpoint = self._endpoint
        connection = await Connection.open(endpoint.host, endpoint.port, self._context, _CONNECT_WITHIN_S)
        self._open.add(connection)
        if self._closed:
            self._drop(connection)
            raise closed_here()
        return connection

    def _return(self, connection: Connection, reusable: bool) -> None:
        if reusable and connection.is_usable and not self._closed and len(self._idle) < _IDLE_AT_MOST:
            self._idle.append((connection, time.monotonic()))
        else:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        """Closes a connection in the background. `close` waits for it."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        connection.abort()
        closing = asyncio.get_running_loop().create_task(connection.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Closes every connection, also those in use, and waits until their sockets are closed."""
        self._closed = True
        self._idle.clear()
        for connection in [*self._open]:
            self._drop(connection)
        while self._closing:
            await asyncio.gather(*self._closing, return_exceptions=True)


def closed_here() -> Exception:
    """Returns the error of calls of a closed client."""
    return unavailable("This Fleet was closed. Accepted commands go on; fleet.command(id) of a new one finds them.")
