"""What callers pass: the spec of a session, the options of a command, and tasks of batches.

All of them are dictionaries without required keys, so they can be written as keyword arguments too:
`fleet.session('a', image='python:3.12')` is `fleet.session('a', {'image': 'python:3.12'})`.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, Union

from .events import OutputChunk

PolicyName = Literal["docker", "host", "bubblewrap", "codex", "kubernetes"]
ApprovalScope = Literal["command", "session", "prefix"]


class OpenStdin:
    """A stdin that `command.write` and `command.close_stdin` supply. OPEN is the only one."""

    def __repr__(self) -> str:
        return "shellfleet.OPEN"


OPEN: Final = OpenStdin()
"""Stdin that `command.write` and `command.close_stdin` supply."""

Stdin = Union[str, bytes, AsyncIterable[bytes], Iterable[bytes], OpenStdin]
"""Standard input: text, bytes, pieces that are sent while the command runs, or OPEN."""


class OutputOptions(TypedDict, total=False):
    """Bounds of the output of each command of a session."""

    max_bytes: int
    """Bytes of each stream in the Result. Default: 262,144."""
    max_lines: int
    """Lines of each stream in the Result. Default: 10,000."""
    keep: Literal["head", "tail", "head-tail"]
    """The part of a longer output that the Result keeps. Default: `head-tail`."""
    stream_bytes: int
    """Output bytes of each command that the session's stream carries. Default: 8,388,608."""


class SandboxOptions(TypedDict, total=False):
    """What the sandbox of a session allows. A host refuses what it cannot enforce (SANDBOX_UNAVAILABLE)."""

    mode: Literal["read-only", "workspace-write", "danger-full-access", "external"]
    network: Literal["restricted", "limited", "full"]
    allowed_hosts: Sequence[str]
    """Host names for the network `limited`, such as `*.example.org`."""
    selection: Literal["auto", "require", "forbid"]
    escalate_on_failure: bool


class LimitOptions(TypedDict, total=False):
    """Resources of a sandbox."""

    memory_bytes: int
    cpus: float
    pids: int
    cpu_time_seconds: int
    disk_bytes: int
    file_size_bytes: int
    resources: Mapping[str, int]
    """Other resources of a Kubernetes cluster, such as `{'nvidia.com/gpu': 1}`."""


class RedactionRule(TypedDict, total=False):
    """A rule that replaces or blocks text in a session's output. `type` and `strategy` are required."""

    type: str
    strategy: Literal["block", "redact", "mask", "hash"]
    pattern: str


class PrefixRule(TypedDict, total=False):
    """A decision about every command that begins with the words of a pattern."""

    pattern: Sequence[str | Sequence[str]]
    decision: Literal["allow", "prompt", "forbid"]
    justification: str
    match: Sequence[str]
    not_match: Sequence[str]


class SessionSpec(TypedDict, total=False):
    """How a session is set up. docs/reference has every field with its default and limits."""

    policy: PolicyName | Mapping[str, Any]
    """Where the shell runs: the name of a policy, or `{'type': name, …}` with its options. Default: `docker`."""
    image: str
    """Container image. Default: the image of the host."""
    env: Mapping[str, str]
    """Variables of the shell."""
    cwd: str
    """Directory in which a fresh shell starts. Default: /workspace."""
    workspace: str | Mapping[str, Any]
    """Directory of the host that is mounted, which the operator must allow."""
    shell: Sequence[str]
    user: str
    startup_commands: Sequence[str]
    """Scripts that every fresh shell runs before any command."""
    shutdown_commands: Sequence[str]
    command_timeout_ms: float
    """Limit in ms of a command that has no `timeout_ms` of its own. Default: 600,000."""
    startup_timeout_ms: float
    termination_timeout_ms: float
    output: OutputOptions
    redaction: Sequence[RedactionRule]
    redact_formats: bool
    secrets: Mapping[str, str]
    """Variables of the shell whose values are redacted in every encoding."""
    sandbox: SandboxOptions
    approval: Literal["never", "on-failure", "on-request", "unless-trusted"] | Mapping[str, Any]
    """Which commands wait for the approval of a person."""
    ask_by_default: Literal["unreadable", "sandboxed"]
    approval_timeout_ms: float
    exec_policy: Sequence[PrefixRule]
    limits: LimitOptions
    idle_timeout_ms: float
    """Time in ms after which an idle session gives up shell and slot. Default: 1,800,000."""
    max_lifetime_ms: float
    on_host_loss: Literal["fail", "recreate"]
    host_grace_ms: float
    keep_on_failure: bool
    priority: int
    labels: Mapping[str, str]
    """Names and values by which sessions are listed."""
    hosts: Mapping[str, str]
    """Labels that its host must have."""
    near: str


class SubmitOptions(TypedDict, total=False):
    """The options of one command that the API takes."""

    timeout_ms: float
    """Wall clock limit in ms, from the first byte to the shell. Default: that of the session."""
    no_output_timeout_ms: float
    """Limit in ms on the time without any output."""
    kill_grace_ms: float
    """Time in ms that stopping the command may take. Default: 1,500."""
    env: Mapping[str, str]
    """Variables for this command only."""
    cwd: str
    """Working directory for this command only."""
    stdin: Stdin
    """Standard input. Default: empty."""
    idempotency_key: str
    """A second submit of the same command and key in this session returns the first command. Default: a new key, which
    makes it safe to repeat the request over a broken connection."""
    durable: bool
    """Whether `submit` waits until the command is on the disk of Redis."""
    retry: Literal["never", "idempotent"]
    encoding: Literal["utf8", "base64"]
    """Encoding of the texts of the Result. Default: `utf8`."""
    start_deadline_ms: float
    """Time in ms within which the command must start, or end as `timeout`."""
    escalate: Mapping[str, str]
    """Asks to run once outside the sandbox: `{'justification': '…'}`."""
    network: Literal["restricted", "limited"]
    traceparent: bool


class RunOptions(SubmitOptions, total=False):
    """The options of `run`."""

    on_output: Callable[[OutputChunk], None]
    """Function that gets each piece of the output, live."""


class Task(TypedDict, total=False):
    """One or several scripts that run in a separate session. `id` and `script` are required."""

    id: str
    script: str | Sequence[str]
    """Scripts that run in order, up to the first that does not succeed."""
    spec: SessionSpec
    setup: Sequence[str]
    outputs: Mapping[str, str]
    grade: str | Mapping[str, Any]
    timeout_ms: float
    deadline_ms: float


class BatchOptions(TypedDict, total=False):
    """How a batch runs."""

    name: str
    """Name, 1 to 64 of `A-Z a-z 0-9 . _ -`. Default: a new name."""
    concurrency: int
    retries: Mapping[str, int]
    """How often a task runs again: `{'infra': 2, 'command': 0}` by default."""
    repeats: int
    spec: SessionSpec
    """Spec that the tasks share."""
    timeout_ms: float
    start_deadline_ms: float
    task_deadline_ms: float
    deadline_ms: float
    stop_on_failure: bool
