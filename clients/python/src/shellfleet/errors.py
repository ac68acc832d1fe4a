"""The error of this package, and errors as data."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class WireError:
    """An error as data, such as that of a Result with the outcome `error`."""

    code: str
    """Code of docs/errors.md, or one that only newer servers know."""
    message: str
    """Sentence for a person, with the next step."""
    retryable: bool
    """Whether the same call may succeed later."""
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Details for a program. Their form depends on the code."""


class ShellfleetError(Exception):
    """A failure of Shellfleet itself. The failure of a command is data (an outcome), never this error."""

    code: str
    """Code of docs/errors.md."""
    message: str
    """Sentence for a person, with the next step."""
    retryable: bool
    """Whether the same call may succeed later."""
    context: Mapping[str, Any]
    """Details for a program. Their form depends on the code."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, context: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.context = context or {}

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


def unavailable(message: str) -> ShellfleetError:
    """Returns the error for an API that does not answer."""
    return ShellfleetError("QUEUE_UNAVAILABLE", message, retryable=True)


def invalid(message: str) -> ShellfleetError:
    """Returns the error for a call that can never be right."""
    return ShellfleetError("COMMAND_INVALID", message)


@contextmanager
def only_sendable() -> Generator[None, None, None]:
    """Raises COMMAND_INVALID for text that a request cannot carry, such as half of a character."""
    try:
        yield
    except ValueError as error:
        raise invalid(f"The request cannot be sent: {error}.") from error
