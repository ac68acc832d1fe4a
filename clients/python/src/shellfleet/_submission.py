"""Turns the arguments of a submit into a request."""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ._wire import Json, to_json
from .errors import only_sendable
from .options import OPEN, Stdin

_STORED_STDIN_BYTES = 524_288
"""The largest stdin that is sent with its command. Longer ones are sent while it runs."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A submit as the API takes it."""

    body: Json
    key: str
    """Idempotency key."""
    own_key: bool
    """Whether the caller gave the key."""
    stream: AsyncIterable[bytes] | None
    """Stdin that is sent while the command runs."""

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the request."""
        return {"idempotency-key": self.key}


def to_submission(script: str, options: Mapping[str, Any]) -> Submission:
    """Returns the request for a script with the options of a command."""
    given = {name: value for name, value in options.items() if value is not None}
    key = cast("str | None", given.pop("idempotency_key", None))
    stdin, stream = _split_stdin(given.pop("stdin", None))
    body = {"script": script, **to_json(given), **({} if stdin is None else {"stdin": stdin})}
    return Submission(body, key or uuid.uuid4().hex, key is not None, stream)


def _split_stdin(stdin: Stdin | None) -> tuple[Json, AsyncIterable[bytes] | None]:
    """Returns the stdin that is sent with the command, and that which is sent later."""
    if stdin is None or stdin is OPEN:
        return (None if stdin is None else {"open": True}), None
    if isinstance(stdin, (str, bytes)):
        with only_sendable():
            content = stdin.encode() if isinstance(stdin, str) else stdin
        if len(content) > _STORED_STDIN_BYTES:
            return {"open": True}, to_pieces([content])
        return (stdin if isinstance(stdin, str) else {"base64": b64encode(stdin).decode()}), None
    return {"open": True}, to_pieces(cast("AsyncIterable[bytes] | Iterable[bytes]", stdin))


async def to_pieces(source: AsyncIterable[bytes] | Iterable[bytes]) -> AsyncGenerator[bytes]:
    """Yields the pieces of a source of either kind."""
    if isinstance(source, AsyncIterable):
        async for piece in source:
            yield piece
    else:
        for piece in source:
            yield piece
