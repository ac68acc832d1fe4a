"""The Result of a command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from .errors import WireError

Outcome = Literal["success", "failure", "timeout", "cancellation", "denial", "blocked", "lost", "error"]
"""How a command ended. `success`, `failure`: by itself, with exit code 0 or another one, or by a signal. `timeout`,
`cancellation`: it was stopped, or never started. `denial`: rules or an approver denied it, and nothing ran. `blocked`:
it ran, and a redaction rule withholds its output. `lost`: it started, and its end is not known. `error`: the fleet
failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """Whether texts of a Result are shorter than the output."""

    bytes: bool
    lines: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Bytes and lines of the output of a command, after redaction."""

    stdout_bytes: int
    stderr_bytes: int
    stdout_lines: int
    stderr_lines: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellState:
    """State of the shell after a command."""

    state: Literal["kept", "partial", "lost"]
    """`kept`; `partial`: some of it could not be saved; `lost`: the next command gets a fresh one."""
    epoch: int
    """Number of shells that the session has had. 0 when no shell is concerned."""
    reason: str | None = None
    """Reason in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timings:
    """Times in ms from acceptance: the wait for turn and slot, the opening of the shell, the run, and their sum."""

    queued_ms: float
    start_ms: float
    run_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptPart:
    """A part of the time of a command."""

    step: str
    """What the time went into, such as `slot`, `earlier`, `approval`, `image`, `opening`, `waiting` or `running`."""
    ms: float
    """Length in ms."""
    clock: Literal["redis", "host"]
    """The clock that measured it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Where the time of a command went, from its acceptance until its Result was stored. Times are ISO 8601."""

    accepted_at: str
    stored_at: str
    total_ms: float
    parts: tuple[ReceiptPart, ...]
    """Parts of that time, in their order."""
    started_at: str | None = None
    first_output_ms: float | None = None
    """Time in ms from its start on the host to its first output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What the sandbox used while a command ran."""

    cpu_ms: float
    """Processor time in ms of all processes of the sandbox."""
    peak_memory_bytes: int
    """Highest memory of the sandbox so far, cached files included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDenied:
    """A denial by the sandbox, guessed from the output."""

    what: Literal["files", "network", "system-call"]
    line: str
    """Line of the output that reports the denial."""
    may_ask: bool
    """Whether a person would be asked about the same command with `escalate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstAttempt:
    """How the first attempt of a command ended."""

    exit_code: int | None
    output: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockedOutput:
    """Why output is withheld."""

    type: str
    """Type of the rule."""
    reason: Literal["matched", "too-slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Everything known about an ended command. A command that fails has a Result too: its `outcome` says so."""

    command_id: str
    """Id of the command, `<session>.<ULID>`, for `fleet.command`."""
    session_id: str
    outcome: Outcome
    exit_code: int | None
    """Exit code, 0 to 255, for `success`, `failure` and `blocked`; else None."""
    signal: str | None
    """Signal that ended the command, such as `SIGKILL`, if its shell noticed the signal."""
    stdout: str
    """Redacted stdout, within `max_bytes` and `max_lines` of the session's `output`, in `encoding` of the options."""
    stderr: str
    """Redacted stderr, within the same limits."""
    output: str
    """Both streams in the order in which redaction released them."""
    truncated: Truncated
    totals: Totals
    redactions: Mapping[str, int]
    """Number of redactions, by the type of their rule."""
    deduplicated: bool
    """Whether the submit found this command by its idempotency key, so that no new command was accepted."""
    shell: ShellState
    timings: Timings
    host_id: str | None
    """Host that ran the command."""
    reason: str | None = None
    """How it ended, such as `exited`, `signalled`, `oom`, `wall`, `no-output`, `rules` or `approver`."""
    receipt: Receipt | None = None
    usage: Usage | None = None
    image_digest: str | None = None
    attempts: int | None = None
    """Number of starts, if more than one."""
    outside: bool = False
    """Whether the command ran outside the sandbox of its session."""
    denied: SandboxDenied | None = None
    refused: str | None = None
    """Why a requested second attempt outside the sandbox did not take place."""
    first_attempt: FirstAttempt | None = None
    blocked: BlockedOutput | None = None
    """The rule that withholds further output."""
    limit_ms: float | None = None
    """The limit of a `timeout` in ms."""
    cancel_reason: str | None = None
    """Why the command was cancelled: the words of the caller, or that its host was shut down."""
    error: WireError | None = None
    """The error, for the outcome `error`."""
