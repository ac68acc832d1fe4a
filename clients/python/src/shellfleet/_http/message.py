"""Heads of HTTP/1.1 messages: writes those of requests, parses those of responses. No I/O."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Union

from ..errors import invalid, only_sendable

Body = Union[bytes, AsyncIterable[bytes], None]


class MessageError(Exception):
    """The peer sent something that is no HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `target` is the path and query, already encoded. With `once` it never reaches the server twice.

    With `patient`, it may take any time, as when it waits for a person or for a command.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Body = None
    once: bool = False
    patient: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether the request may reach the server twice, and its body is still there for the second time."""
        return not self.once and self.has_body

    @property
    def has_body(self) -> bool:
        """Whether the body can be sent again: the pieces of an iterator are gone after the first time."""
        return not isinstance(self.body, AsyncIterator)


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a response. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]

    @property
    def keeps_alive(self) -> bool:
        """Whether the connection can be used again."""
        return "close" not in self.headers.get("connection", "").lower()


def encode_head(request: Request, common: Mapping[str, str]) -> bytes:
    """Returns the head of a request, with the headers that all requests have."""
    headers = {**common, **request.headers}
    if isinstance(request.body, bytes):
        headers["content-length"] = str(len(request.body))
    elif request.body is not None:
        headers["transfer-encoding"] = "chunked"
    elif request.method in ("POST", "PUT"):
        headers["content-length"] = "0"
    lines = [f"{request.method} {request.target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any("\r" in line or "\n" in line for line in lines):
        raise invalid("The request cannot be sent: a header must not contain a line break.")
    with only_sendable():
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def parse_head(text: bytes) -> Head:
    """Parses the head of a response, up to its empty line."""
    begin, _, fields = text.partition(b"\r\n")
    first = begin.decode("latin-1")
    status = re.fullmatch(r"HTTP/1\.[01] (\d{3})(?: .*)?", first)
    if status is None:
        raise MessageError(f"It answered {first[:80]!r}, which is no HTTP/1.1")
    return Head(int(status[1]), parse_fields(fields))


def parse_fields(text: bytes) -> dict[str, str]:
    """Parses lines of names and values, as of a head or of trailers. The names are then in lower case."""
    headers: dict[str, str] = {}
    for line in text.decode("latin-1").rstrip("\r\n").split("\r\n") if text.strip() else ():
        name, colon, value = line.partition(":")
        if not colon:
            raise MessageError("It answered with a header without a colon")
        headers[name.strip().lower()] = value.strip()
    return headers


def parse_chunk_size(line: bytes) -> int:
    """Parses the line before a chunk of a body."""
    digits = line.split(b";")[0].strip()
    if not re.fullmatch(rb"[0-9A-Fa-f]{1,12}", digits):
        raise MessageError("It answered with a chunk of no size")
    return int(digits, 16)
