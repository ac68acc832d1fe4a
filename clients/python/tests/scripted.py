"""A server that plays prepared answers, for tests of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from shellfleet._http.api import Api
from shellfleet._http.pool import Pool
from shellfleet._settings import Endpoint


@dataclass
class Received:
    """A request as the server received its head."""

    line: str
    headers: dict[str, str]
    connection: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


Answer = Callable[[Received], Awaitable[None]]


@dataclass
class Scripted:
    """The server, and what it received. Each request gets the next answer; without one the connection is closed."""

    port: int = 0
    answers: list[Answer] = field(default_factory=list["Answer"])
    received: list[Received] = field(default_factory=list["Received"])
    connections: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *rest = head.rstrip().split("\r\n")
                headers = {name.lower(): value for name, value in (one.split(": ", 1) for one in rest)}
                request = Received(line, headers, number, reader, writer)
                self.received.append(request)
                if "content-length" in headers:
                    await reader.readexactly(int(headers["content-length"]))
                if not self.answers:
                    return
                await self.answers.pop(0)(request)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def answer(content: bytes = b"{}", status: str = "200 OK", *, close: bool = False, retry_after: str = "") -> Answer:
    """Returns an answer of one piece. With `close`, the connection is closed after it."""

    async def write(request: Received) -> None:
        more = f"retry-after: {retry_after}\r\n" if retry_after else ""
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(content)}\r\n{more}\r\n"
        request.writer.write(head.encode() + content)
        if close:
            request.writer.close()

    return write


def problem(status: str, code: str, *, retry_after: str = "") -> Answer:
    """Returns an answer with an error of the API."""
    body = f'{{"code": "{code}", "title": "t", "detail": "d", "retryable": true, "context": {{"a": 1}}}}'
    return answer(body.encode(), status, retry_after=retry_after)


def raw(data: bytes, *, close: bool = True) -> Answer:
    """Returns an answer of these bytes, after which the connection is closed."""

    async def write(request: Received) -> None:
        request.writer.write(data)
        await request.writer.drain()
        if close:
            request.writer.close()

    return write


@asynccontextmanager
async def scripted(*answers: Answer, retry_s: float = 5) -> AsyncGenerator[tuple[Scripted, Api]]:
    """Starts a server with these answers, and a client of it."""
    script = Scripted(answers=[*answers])
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    script.port = server.sockets[0].getsockname()[1]
    endpoint = Endpoint("127.0.0.1", script.port, False, "", "k")
    api = Api(endpoint, Pool(endpoint, None), retry_s)
    try:
        yield script, api
    finally:
        await api.close()
        server.close()
        await server.wait_closed()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.wait(others, timeout=2) if others else None
