"""What streams of the API yield: output of commands, and events of sessions and of the fleet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .results import Result

StreamName = Literal["stdout", "stderr"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChunk:
    """A piece of a command's output, after redaction."""

    id: str
    """Position in the session's stream: `output(after=id)` continues after it."""
    stream: StreamName
    seq: int
    """Number of the chunk, from 0, over both streams of the command."""
    data: bytes
    """Redacted bytes."""
    text: str
    """The bytes as UTF-8. If two chunks share a character, its text is in the second chunk."""
    omitted_bytes: int = 0
    """Number of bytes that are missing before this chunk."""
    omitted_because: str | None = None
    """Why bytes are missing: `over-budget`, `withheld` or `trimmed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEvent:
    """One event of a session."""

    id: str
    """Position in the session's stream: `events(after=id)` continues after it."""
    at: str
    """Time of the event; ISO 8601."""
    type: str
    """Kind of event, such as `session.opened`, `command.started`, `command.output` or `command.completed`."""
    data: OutputChunk | Result | dict[str, Any]
    """An OutputChunk for `command.output`, a Result for `command.completed`, else fields that depend on the type."""
    command_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetEvent:
    """Something that happened in the fleet, as operators see it."""

    at: str
    type: str
    """Kind of event, such as `host.up`, `session.closed` or `command.completed`."""
    id: str | None = None
    tenant: str | None = None
    session_id: str | None = None
    command_id: str | None = None
    host_id: str | None = None
    data: dict[str, Any] | None = None
