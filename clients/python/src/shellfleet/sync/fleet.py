"""The fleet without await."""

from __future__ import annotations

import builtins
import ssl
import uuid
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import approvals as _approvals
from .. import batches as _batches
from .. import fleet as _fleet
from .. import tools as _tools
from ..errors import ShellfleetError
from ..events import FleetEvent
from ..infos import (
    Approval,
    BatchInfo,
    HostInfo,
    Me,
    SessionInfo,
    SessionState,
    TaskResult,
    ToolEvent,
    ToolInfo,
    ToolResult,
)
from ..options import ApprovalScope, BatchOptions, RunOptions, SessionSpec, Task
from ..results import Result
from ._portal import Portal
from .session import Command, Session, portable

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Fleet:
    """One tenant of a fleet, over its HTTP API, as `shellfleet.Fleet`. Several threads may use it.

    It has one thread of its own, which ends with `close` or the `with` block.
    """

    approvals: Approvals
    tools: Tools
    batches: Batches

    def __init__(self, portal: Portal, fleet: _fleet.Fleet) -> None:
        self._portal = portal
        self._fleet = fleet
        self.approvals = Approvals(portal, fleet.approvals)
        self.tools = Tools(portal, fleet.tools)
        self.batches = Batches(portal, fleet.batches)

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        api_key: str | None = None,
        *,
        ssl_context: ssl.SSLContext | None = None,
        retry_ms: float = _fleet.RETRY_MS,
    ) -> Fleet:
        """Connects to the API that the arguments name, else `SHELLFLEET_URL` and `SHELLFLEET_API_KEY`, else the fleet
        that `shellfleet up` started for this user. Raises as `shellfleet.Fleet.connect`.
        """
        portal = Portal()
        try:

            async def connect() -> _fleet.Fleet:
                return await _fleet.Fleet.connect(url, api_key, ssl_context=ssl_context, retry_ms=retry_ms)

            return cls(portal, portal.call(connect()))
        except BaseException:
            portal.close()
            raise

    def __repr__(self) -> str:
        return repr(self._fleet)

    @property
    def me(self) -> Me:
        """Name, tenant and scopes of the key."""
        return self._fleet.me

    def session(self, id: str, spec: SessionSpec | None = None, **fields: Unpack[SessionSpec]) -> Session:
        """Opens a session, or attaches to the open one of this id, as `shellfleet.Fleet.session`."""
        return Session(self._portal, self._portal.call(self._fleet.session(id, spec, **fields)))

    def attach(self, id: str) -> Session | None:
        """Returns the newest session of this id, open or closed. Returns None if there is none, and creates none."""
        session = self._portal.call(self._fleet.attach(id))
        return None if session is None else Session(self._portal, session)

    def sessions(
        self, *, state: SessionState | None = None, labels: dict[str, str] | None = None, all: bool = False
    ) -> Generator[SessionInfo]:
        """Yields the open sessions of this tenant, as `shellfleet.Fleet.sessions`."""
        return self._portal.iterate(self._fleet.sessions(state=state, labels=labels, all=all))

    def run(self, script: str, *, spec: SessionSpec | None = None, **options: Unpack[RunOptions]) -> Result:
        """Runs one command in a separate session, which is closed afterwards. Ctrl-C cancels the command.

        `on_output` is called in the thread of the caller. Raises as `shellfleet.Fleet.run`.
        """
        if options.get("on_output") is None:
            return self._portal.call(self._fleet.run(script, spec=spec, **portable(self._portal, options)))
        session = self.session(_fleet.one_shot_id(options.get("idempotency_key") or uuid.uuid4().hex), spec)
        try:
            result = session.run(script, **options)
        except BaseException as error:
            if _fleet.ends_one_shot(error, options):
                session.close()
            raise
        session.close()
        return result

    def command(self, id: str) -> Command:
        """Finds a command by its id, also one of another process. Raises COMMAND_INVALID or RESULT_EXPIRED."""
        return Command(self._portal, self._portal.call(self._fleet.command(id)))

    def batch(self, tasks: Iterable[Task], **options: Unpack[BatchOptions]) -> Generator[TaskResult]:
        """Runs tasks, each in a separate session, and yields their results, as `shellfleet.Fleet.batch`."""
        return self._portal.iterate(self._fleet.batch(tasks, **options))

    def hosts(self) -> list[HostInfo]:
        """Lists the registered hosts of the fleet, with their last heartbeats."""
        return self._portal.call(self._fleet.hosts())

    def events(self) -> Generator[FleetEvent]:
        """Yields what happens in the fleet from now on, as `shellfleet.Fleet.events`."""
        return self._portal.iterate(self._fleet.events())

    def close(self) -> None:
        """Ends this client's waits, closes its connections and ends its thread. Accepted commands go on."""
        try:
            if not self._portal.is_closed:
                self._portal.call(self._fleet.close())
        except ShellfleetError:
            # Another thread closes the Fleet at the same time.
            if not self._portal.is_closed:
                raise
        self._portal.close()

    def __enter__(self) -> Fleet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Approvals:
    """The questions of this tenant for a person, and their answers, as `shellfleet.Approvals`."""

    def __init__(self, portal: Portal, approvals: _approvals.Approvals) -> None:
        self._portal = portal
        self._approvals = approvals

    def list(self, *, session_id: str | None = None) -> builtins.list[Approval]:
        """Returns pending questions, the oldest first."""
        return self._portal.call(self._approvals.list(session_id=session_id))

    def watch(self) -> Generator[Approval]:
        """Yields every question that waits, then each one that is asked or changes."""
        return self._portal.iterate(self._approvals.watch())

    def approve(self, id: str, *, scope: ApprovalScope = "command") -> None:
        """Approves a question, as `shellfleet.Approvals.approve`."""
        self._portal.call(self._approvals.approve(id, scope=scope))

    def deny(self, id: str, reason: str | None = None, *, abort: bool = False) -> None:
        """Denies a question, as `shellfleet.Approvals.deny`."""
        self._portal.call(self._approvals.deny(id, reason, abort=abort))

    def revoke(self, id: str) -> None:
        """Revokes an approval, as `shellfleet.Approvals.revoke`."""
        self._portal.call(self._approvals.revoke(id))


class Tools:
    """Functions that hosts offer, as `shellfleet.Tools`."""

    def __init__(self, portal: Portal, tools: _tools.Tools) -> None:
        self._portal = portal
        self._tools = tools

    def list(self) -> builtins.list[ToolInfo]:
        """Lists the tools that live hosts offer now, by name."""
        return self._portal.call(self._tools.list())

    def call(self, name: str, args: Any = None, *, timeout_ms: float | None = None) -> ToolResult:
        """Calls a tool with JSON arguments, as `shellfleet.Tools.call`."""
        return self._portal.call(self._tools.call(name, args, timeout_ms=timeout_ms))

    def watch(self) -> Generator[ToolEvent]:
        """Yields `tool.added` for every offered tool, then each change and call of this tenant."""
        return self._portal.iterate(self._tools.watch())


class Batches:
    """Batches that workers of the fleet drive, as `shellfleet.Batches`."""

    def __init__(self, portal: Portal, batches: _batches.Batches) -> None:
        self._portal = portal
        self._batches = batches

    def submit(self, tasks: Iterable[Task], **options: Unpack[BatchOptions]) -> BatchInfo:
        """Submits a batch, as `shellfleet.Batches.submit`."""
        return self._portal.call(self._batches.submit(tasks, **options))

    def list(self) -> builtins.list[BatchInfo]:
        """Lists the batches of this tenant, the newest first, until their retention is over."""
        return self._portal.call(self._batches.list())

    def get(self, name: str) -> BatchInfo:
        """Reads how far a batch is. Raises BATCH_NOT_FOUND."""
        return self._portal.call(self._batches.get(name))

    def results(self, name: str, *, follow: bool = True) -> Generator[TaskResult]:
        """Yields the results of a batch, as `shellfleet.Batches.results`."""
        return self._portal.iterate(self._batches.results(name, follow=follow))

    def cancel(self, name: str) -> bool:
        """Ends a batch. Returns False if it had ended."""
        return self._portal.call(self._batches.cancel(name))

    def remove(self, name: str) -> None:
        """Removes a batch that has ended, with its results. Raises COMMAND_INVALID before its end."""
        self._portal.call(self._batches.remove(name))
