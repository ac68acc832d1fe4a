"""One connection to the API."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping

from .message import Head, MessageError, Request, encode_head, parse_chunk_size, parse_fields, parse_head

PIECE = 65_536
_HEAD_LIMIT = 262_144


class Broken(Exception):
    """The connection could not be made, broke, or was silent for too long.

    `sent`: whether the request may have reached the server.
    """

    def __init__(self, message: str, *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class _SourceFailed(Exception):
    """The source of a body raised an error, which is that of the caller."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


# C1. A connection carries one exchange at a time.
# C2. Whatever ends an exchange before the end of its response (an error, a cancellation, a reader that stops) aborts
#     the connection, so that no later exchange reads the rest.
class Connection:
    """One HTTP/1.1 connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._silence: asyncio.TimerHandle | None = None
        self._heard_at = 0.0
        self._why = ""
        self.uses = 0
        self.is_spent = False

    @staticmethod
    async def open(host: str, port: int, context: ssl.SSLContext | None, timeout_s: float) -> Connection:
        """Opens a connection. Raises Broken."""
        opening = asyncio.open_connection(host, port, ssl=context, limit=_HEAD_LIMIT)
        try:
            reader, writer = await asyncio.wait_for(opening, timeout_s)
        except asyncio.TimeoutError:
            raise Broken(f"It did not accept a connection within {timeout_s:g} s", sent=False) from None
        except OSError as error:
            raise Broken(str(error), sent=False) from error
        _keep_alive(writer.get_extra_info("socket"))
        return Connection(reader, writer)

    @property
    def is_usable(self) -> bool:
        """Whether another exchange can begin: the server has neither closed the connection nor sent anything."""
        return not (self._writer.is_closing() or self._reader.at_eof())

    async def exchange(self, request: Request, common: Mapping[str, str], silence_s: float | None) -> Response:
        """Sends a request and returns the response when its head has arrived. Raises Broken.

        The connection counts as broken when nothing arrives or can be sent for `silence_s`. Without it, the operating
        system notices a server that is gone.
        """
        self.uses += 1
        if silence_s is not None:
            self._watch(silence_s)
        try:
            head = await self._send_and_receive(request, encode_head(request, common))
        except (OSError, EOFError, MessageError, asyncio.LimitOverrunError) as error:
            self.abort()
            why = "It closed the connection" if isinstance(error, EOFError) else str(error)
            raise Broken(self._why or why) from error
        except _SourceFailed as failure:
            self.abort()
            raise failure.error from None
        except BaseException:
            self.abort()
            raise
        return Response(self, request, head)

    async def _send_and_receive(self, request: Request, head: bytes) -> Head:
        body = request.body
        if body is None or (isinstance(body, bytes) and len(body) <= PIECE):
            self._writer.write(head + (body or b""))
            return await self._receive_head()
        self._writer.write(head)
        sending = asyncio.create_task(self._send_bytes(body) if isinstance(body, bytes) else self._send_pieces(body))
        receiving = asyncio.create_task(self._receive_head())
        try:
            # A server that refuses a body may answer before the end of it.
            await asyncio.wait({sending, receiving}, return_when=asyncio.FIRST_COMPLETED)
            if not receiving.done():
                sending.result()
            self.is_spent = not sending.done()
            return await receiving
        finally:
            for task in (sending, receiving):
                task.cancel()
            await asyncio.gather(sending, receiving, return_exceptions=True)

    async def _send_bytes(self, body: bytes) -> None:
        for start in range(0, len(body), PIECE):
            if not await self._send(body[start : start + PIECE]):
                return

    async def _send_pieces(self, pieces: AsyncIterable[bytes]) -> None:
        try:
            async for piece in pieces:
                if piece and not await self._send(b"%x\r\n%b\r\n" % (len(piece), piece)):
                    return
        except Exception as error:
            raise _SourceFailed(error) from error
        await self._send(b"0\r\n\r\n")

    async def _send(self, data: bytes) -> bool:
        """Returns False when the server has closed the connection. Its answer may still be there to read."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            return False
        self._heard_at = self._loop.time()
        return True

    async def _receive_head(self) -> Head:
        while True:
            head = parse_head(await self._reader.readuntil(b"\r\n\r\n"))
            self._heard_at = self._loop.time()
            if head.status >= 200:
                return head

    async def receive(self, most: int) -> bytes:
        """Returns up to `most` bytes of a body. Raises Broken at the end of the connection."""
        try:
            data = await self._reader.read(min(most, PIECE))
        except OSError as error:
            raise Broken(self._why or str(error)) from error
        if not data:
            raise Broken(self._why or "It closed the connection in the middle of an answer")
        self._heard_at = self._loop.time()
        return data

    async def receive_line(self) -> bytes:
        """Returns a line of the framing of a body. Raises Broken."""
        try:
            return await self._reader.readuntil(b"\r\n")
        except (OSError, EOFError, asyncio.LimitOverrunError) as error:
            raise Broken(self._why or "It closed the connection in the middle of an answer") from error

    def _watch(self, silence_s: float) -> None:
        """Aborts the connection when it is silent for `silence_s`, until `rest`."""
        self._heard_at = self._loop.time()

        def look() -> None:
            due = self._heard_at + silence_s
            if self._loop.time() >= due:
                self._why = f"It was silent for {silence_s:g} s"
                self._writer.transport.abort()
            else:
                self._silence = self._loop.call_at(due, look)

        self._silence = self._loop.call_at(self._heard_at + silence_s, look)

    def rest(self) -> None:
        """Ends the watch over an exchange whose response was read to its end."""
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def abort(self) -> None:
        """Closes the connection at once."""
        self.rest()
        self._writer.transport.abort()

    async def close(self) -> None:
        """Closes the connection, and waits until its socket is closed."""
        self.abort()
        try:
            await self._writer.wait_closed()
        except (OSError, EOFError):
            pass


def _keep_alive(opened: socket.socket) -> None:
    """Asks the operating system to break a connection whose server is gone, within a minute where it can."""
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


class Response:
    """A response whose body is still to be read, once: by `pieces` or `read`. Close it if it is not read to its end."""

    def __init__(self, connection: Connection, request: Request, head: Head) -> None:
        self._connection = connection
        self._request = request
        self._head = head
        self.status = head.status
        self.headers = head.headers
        self.trailers: Mapping[str, str] = {}
        """Headers after a body of chunks that was read to its end."""
        self.on_end: Callable[[Connection, bool], None] = lambda _connection, _reusable: None
        self.ended = False
        if self._has_no_body:
            self._end(self.is_reusable)

    @property
    def _has_no_body(self) -> bool:
        headers = self._head.headers
        empty = headers.get("content-length") == "0" and "transfer-encoding" not in headers
        return self.status in (204, 304) or self._request.method == "HEAD" or empty

    @property
    def is_reusable(self) -> bool:
        """Whether the connection can carry another exchange when this response has been read."""
        return self._head.keeps_alive and not self._connection.is_spent

    async def pieces(self) -> AsyncGenerator[bytes]:
        """Yields the body as it arrives. Raises Broken when it ends too early."""
        if self.ended:
            return
        try:
            if "chunked" in self.headers.get("transfer-encoding", "").lower():
                async for piece in self._chunks():
                    yield piece
            elif "content-length" in self.headers:
                left = int(self.headers["content-length"])
                if left < 0:
                    raise MessageError("It answered with a body of no length")
                while left > 0:
                    piece = await self._connection.receive(left)
                    left -= len(piece)
                    yield piece
            else:
                raise MessageError("It answered with a body of no length")
            self._end(self.is_reusable)
        except (MessageError, ValueError) as error:
            raise Broken(str(error)) from error
        finally:
            self.close()

    async def _chunks(self) -> AsyncGenerator[bytes]:
        while True:
            left = parse_chunk_size(await self._connection.receive_line())
            if left == 0:
                break
            while left > 0:
                piece = await self._connection.receive(left)
                left -= len(piece)
                yield piece
            await self._connection.receive_line()
        trailers = bytearray()
        while (line := await self._connection.receive_line()) != b"\r\n":
            trailers += line
        self.trailers = parse_fields(bytes(trailers))

    def close(self) -> None:
        """Gives the connection up, unless the body has been read to its end."""
        self._end(False)

    def _end(self, reusable: bool) -> None:
        if self.ended:
            return
        self.ended = True
        if reusable:
            self._connection.rest()
        else:
            self._connection.abort()
        self.on_end(self._connection, reusable)
