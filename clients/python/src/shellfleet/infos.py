"""What the API says about sessions, hosts, files, questions, tools and batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from .errors import WireError
from .results import FirstAttempt, Outcome, Result

SessionState = Literal["queued", "starting", "ready", "busy", "unreachable", "closing", "closed", "lost"]
"""State of a session. `queued`: it waits for a slot, or has no command yet. `starting`: its shell is being opened.
`ready`: its shell waits for a command. `busy`: a command runs. `unreachable`: its host does not answer. `closing`: a
close was requested. `lost`: its shell is gone; the next command gets a fresh one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Me:
    """Who the API takes this client for."""

    name: str
    """Name of the key."""
    tenant: str
    scopes: tuple[str, ...]
    """What the key may do: `submit`, `read`, `approve`, `admin`."""
    expires_at: str | float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that still runs although the command that started it has ended."""

    pid: int
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """State of a session. Times are ISO 8601, by the clock of Redis."""

    id: str
    state: SessionState
    host_id: str | None
    epoch: int
    """Number of shells that the session has had."""
    queued_commands: int
    """Waiting entries: commands, file operations, restarts."""
    created_at: str
    last_active_at: str
    background: tuple[Process, ...] = ()
    background_unknown: bool = False
    """Whether `background` is not known: the host was not asked, or did not answer in time."""
    way: str | None = None
    """How commands get into its shell: `builtin` or `loop`. None when that is not known."""
    position: int | None = None
    """Position from 1 in the order in which slots are given."""
    queue_length: int | None = None
    eta_ms: float | None = None
    """Estimated wait in ms."""
    at_quota: Mapping[str, Any] | None = None
    no_host_reason: str | None = None
    """Why no live host can run the session."""
    waits_for: str | None = None
    needs: Mapping[str, str] | None = None
    """What a host must have to take the session."""
    wishes: Mapping[str, str] | None = None
    running_command_id: str | None = None
    held_command_id: str | None = None
    """The first waiting command, while it waits for an approval."""
    image: str | None = None
    image_digest: str | None = None
    node: str | None = None
    start: Literal["warm", "cold"] | None = None
    """Whether its shell was ready before the session asked, or was made for it."""
    cold_reason: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    closed_at: str | None = None
    close_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandInfo:
    """State of a command."""

    id: str
    session_id: str
    state: Literal["queued", "running", "ended"]
    result: Result | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HostInfo:
    """A host of the fleet, as its last heartbeat describes it."""

    id: str
    state: Literal["up", "draining", "unreachable"]
    slots: int
    """Sessions with a shell that the host can have at once."""
    free: int
    sessions: int
    running: int
    commands_per_second: float
    policies: tuple[str, ...]
    version: str
    configuration: int
    seen_at: str
    cordoned: bool = False
    held: int = 0
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    problems: tuple[str, ...] = ()
    """Why the host takes no new session at present."""
    warnings: tuple[str, ...] = ()
    """Sentences that tell the operator what to repair."""
    gate: Mapping[str, Any] | None = None
    pulls: tuple[Mapping[str, Any], ...] = ()
    pools: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A file, directory or link in a sandbox."""

    name: str
    path: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int
    """Permission bits, such as 0o644."""
    modified_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A question for a person, with its answer if there is one."""

    id: str
    state: Literal["pending", "approved", "denied", "expired", "revoked", "withdrawn"]
    session_id: str
    command_id: str
    script: str
    """The whole script that will run, redacted. Untrusted text."""
    reason: str
    """Why a person is asked."""
    place: str
    """The sandbox in which the command will run, in words."""
    count: int
    """Number of sessions that ask the same question."""
    asked_at: str
    expires_at: str
    env: tuple[str, ...] = ()
    """Names of the variables that the submitter sets."""
    tool: str | None = None
    justification: str | None = None
    """The submitter's reason for the command. Untrusted text."""
    outside: bool = False
    """Whether the command asks to run outside the sandbox of its session."""
    cwd: str | None = None
    cwd_unknown: str | None = None
    stdin: Mapping[str, Any] | None = None
    content: Mapping[str, Any] | None = None
    covers: Mapping[str, Any] | None = None
    files_written: tuple[str, ...] = ()
    first_attempt: FirstAttempt | None = None
    amendment: Mapping[str, Any] | None = None
    """The rule that the scope `prefix` would add."""
    scope: Literal["command", "session", "prefix"] | None = None
    answer: str | None = None
    submitted_by: Mapping[str, str] | None = None
    answered_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """A tool that live hosts offer. Schemas are JSON Schemas."""

    name: str
    input_schema: Mapping[str, Any]
    timeout_ms: float
    description: str | None = None
    output_schema: Mapping[str, Any] | None = None
    hosts: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    """Hosts whose definition of the tool differs from this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolError:
    """Why a call of a tool failed."""

    code: str
    message: str
    context: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """The result of a call of a tool. The failure of a call is data, like the failure of a command."""

    call_id: str
    ok: bool
    host_id: str | None = None
    output: Any = None
    error: ToolError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolEvent:
    """A tool was added, changed or removed, or a call started or ended."""

    type: str
    name: str | None = None
    tool: ToolInfo | None = None
    at: str | None = None
    call_id: str | None = None
    host_id: str | None = None
    ok: bool | None = None
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchInfo:
    """A batch that was submitted to the fleet. Times are ISO 8601."""

    name: str
    state: Literal["storing", "waiting", "running", "ended"]
    submitted_by: str
    submitted_at: str
    tasks: int
    """Number of tasks, without their repeats."""
    results: int
    """Number of results so far."""
    started_at: str | None = None
    ended_at: str | None = None
    bytes: Mapping[str, int] = field(default_factory=dict[str, int])
    host_id: str | None = None
    cancelled: str | None = None
    stopped_by: str | None = None
    progress: Mapping[str, Any] | None = None
    totals: Mapping[str, int] | None = None
    error: WireError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """How a task of a batch ended."""

    id: str
    """Id of the task, or `<task>#<repeat>` in a batch with repeats."""
    task: str
    repeat: int
    passed: bool
    """Whether the task passed: what its `grade` decided, or without one whether every script succeeded."""
    outcome: Outcome
    session_id: str
    results: tuple[Result, ...]
    """The Results of the scripts that ran, in their order."""
    attempts: int
    started_at: str
    duration_ms: float
    output_bytes: int
    score: float | None = None
    ended_in: str | None = None
    """Step in which the task ended before its end."""
    ended_by: str | None = None
    setup: tuple[Result, ...] = ()
    grade: Result | None = None
    outputs: Mapping[str, Any] | None = None
    error: WireError | None = None
    cpu_ms: float | None = None
    peak_memory_bytes: int | None = None
