"""Calls of the API: retries, errors, JSON."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeVar, cast
from urllib.parse import quote

from .._settings import Endpoint
from .._wire import Json
from ..errors import ShellfleetError, only_sendable, unavailable
from .connection import Broken, Response
from .message import Body, Request
from .pool import Pool

WAIT_S = 30
"""Longest time for which one request waits for the end of a command. Proxies close connections after 60 s."""
SILENCE_S = 60.0
_FIRST_DELAY_S = 0.05
_MOST_DELAY_S = 2.0

T = TypeVar("T")
Query = Mapping[str, "str | int | bool | Sequence[str] | None"]


def path_of(*parts: str) -> str:
    """Returns a path of the API from parts that are encoded."""
    with only_sendable():
        return "/v1/" + "/".join(quote(part, safe="") for part in parts)


class Api:
    """Sends requests, and repeats those that failed where that is safe.

    A request is repeated for `retry_s` when the API cannot be reached or asks for patience (429 and 503). That is safe
    for every request that can be sent twice: those that submit something have an idempotency key.
    """

    def __init__(self, endpoint: Endpoint, pool: Pool, retry_s: float) -> None:
        self._endpoint = endpoint
        self._pool = pool
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = asyncio.Event()
        self.retry_s = retry_s

    async def call(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Json = None,
        headers: Mapping[str, str] | None = None,
        once: bool = False,
        patient: bool = False,
    ) -> Json:
        """Sends JSON, and returns the JSON of the reply, or None if it has none. Raises ShellfleetError."""
        given = dict(headers or {})
        content = None
        if body is not None:
            with only_sendable():
                content = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
            given["content-type"] = "application/json"
        request = Request(method, self._target(path, query), given, content, once, patient)
        # A reply that breaks off is as good as none, so the request is repeated.
        text = await self._exchange(request, _read)
        return parse_json(text) if text else None

    async def fetch(self, path: str) -> bytes:
        """Gets the bytes of a reply, which may take any time to begin. Raises ShellfleetError."""
        return await self._exchange(Request("GET", self._target(path, None), patient=True), _read)

    @asynccontextmanager
    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: Body = None,
        headers: Mapping[str, str] | None = None,
        once: bool = False,
        patient: bool = False,
    ) -> AsyncGenerator[Response]:
        """Sends a request, and yields a response without an error, whose body is still to be read."""
        request = Request(method, self._target(path, query), headers or {}, body, once, patient)
        response = await self._exchange(request, _itself)
        try:
            yield response
        finally:
            response.close()

    def _target(self, path: str, query: Query | None) -> str:
        with only_sendable():
            return self._endpoint.prefix + path + to_query(query)

    async def _exchange(self, request: Request, take: Callable[[Response], Awaitable[T]]) -> T:
        """Sends a request, and returns what `take` makes of its response."""
        until = time.monotonic() + self.retry_s
        delay = _FIRST_DELAY_S
        while True:
            asked = None
            try:
                response = await self._pool.exchange(request, None if request.patient else SILENCE_S)
                if response.status < 300:
                    return await take(response)
                text = await _read(response)
            except Broken as error:
                again, failure = request.repeatable or not error.sent, self.unreachable(error)
            else:
                asked = _to_seconds(response.headers.get("retry-after"))
                failure = to_error(response.status, text)
                is_limit = response.status == 429 and asked is not None
                if not (is_limit or failure.code == "QUEUE_UNAVAILABLE"):
                    raise failure
                # Whoever refuses a request because of its rate has done nothing else.
                again = request.repeatable or (is_limit and request.has_body)
            wait = asked if asked is not None else delay * random.uniform(0.75, 1.25)
            if not again or time.monotonic() + wait > until or self._closed.is_set():
                raise failure
            await self.pause(wait)
            delay = min(delay * 2, _MOST_DELAY_S)

    async def pieces(self, response: Response) -> AsyncGenerator[bytes]:
        """Yields the body of a response. Raises ShellfleetError when the connection breaks."""
        try:
            async with aclosing(response.pieces()) as pieces:
                async for piece in pieces:
                    yield piece
        except Broken as error:
            raise self.unreachable(error) from error

    async def pause(self, seconds: float) -> None:
        """Waits before a request is repeated, at most until the client is closed."""
        try:
            await asyncio.wait_for(self._closed.wait(), seconds)
        except asyncio.TimeoutError:
            pass

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Starts work in the background, which `close` cancels."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Cancels the work in the background, and closes every connection."""
        self._closed.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pool.close()

    def unreachable(self, error: Broken) -> ShellfleetError:
        """Returns the error for a connection that broke."""
        return unavailable(f"The API at {self._endpoint.url} cannot be reached: {error}.")


async def _itself(response: Response) -> Response:
    return response


async def _read(response: Response) -> bytes:
    """Returns the whole body. Raises Broken when it ends too early."""
    async with aclosing(response.pieces()) as pieces:
        return b"".join([piece async for piece in pieces])


def parse_json(text: str | bytes) -> Json:
    """Parses what the API sent. Raises INTERNAL for something else, as the page of a proxy."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise ShellfleetError("INTERNAL", f"The API sent something else than JSON: {text[:200]!r}.") from error


def to_query(query: Query | None) -> str:
    """Returns the query of a URL. Values that are None or False are left out, and True is a name alone."""
    parts: list[str] = []
    for name, value in (query or {}).items():
        if value is True:
            parts.append(quote(name, safe=""))
        elif value is not None and value is not False:
            values = [str(value)] if isinstance(value, (str, int)) else value
            parts.extend(f"{quote(name, safe='')}={quote(one, safe='')}" for one in values)
    return "?" + "&".join(parts) if parts else ""


def to_error(status: int, text: bytes) -> ShellfleetError:
    """Returns the error of a reply: that of its problem details, or one for a reply of something else, as a proxy."""
    try:
        return from_problem(json.loads(text))
    except (ValueError, KeyError, TypeError):
        shown = text[:200].decode("utf-8", "replace")
        message = f"The API answered with status {status}, and not as this client expects: {shown!r}."
        return unavailable(message) if status in (502, 503, 504) else ShellfleetError("INTERNAL", message)


def from_problem(problem: Json) -> ShellfleetError:
    """Returns the error of problem details."""
    details = cast("dict[str, Any]", problem)
    return ShellfleetError(
        details["code"],
        details.get("detail") or details["title"],
        retryable=bool(details.get("retryable")),
        context=details.get("context") or {},
    )


def _to_seconds(retry_after: str | None) -> float | None:
    """Returns the seconds of a Retry-After header. Its other form, a date, counts as absent."""
    if retry_after is None or not retry_after.strip().isdecimal():
        return None
    return float(retry_after)
