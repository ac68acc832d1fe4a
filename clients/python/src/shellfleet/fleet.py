"""The fleet, as one key of its API sees it."""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING

from ._http.api import WAIT_S, Api, path_of
from ._http.follow import follow
from ._http.pool import Pool
from ._paging import pages
from ._settings import Endpoint, find_endpoint
from ._submission import Submission, to_submission
from ._wire import Json, from_json, to_json
from .approvals import Approvals
from .batches import Batches
from .command import CANCEL_WITHIN_S, Command
from .errors import ShellfleetError, invalid, only_sendable
from .events import FleetEvent
from .infos import CommandInfo, HostInfo, Me, SessionInfo, SessionState, TaskResult
from .options import BatchOptions, RunOptions, SessionSpec, Task
from .results import Result
from .session import Session
from .tools import Tools

if TYPE_CHECKING:
    from typing_extensions import Unpack

RETRY_MS = 30_000
"""Time for which calls are repeated when the API cannot be reached."""


class Fleet:
    """One tenant of a fleet, over its HTTP API.

    ```python
    async with Fleet.connect() as fleet:
        session = await fleet.session("build")
        result = await session.run("uname -a")
    ```

    Calls raise ShellfleetError. They are repeated for a while when the API cannot be reached or asks for patience, and
    then raise QUEUE_UNAVAILABLE. A Fleet belongs to the event loop in which it was connected.
    """

    approvals: Approvals
    """Questions of this tenant, and their answers."""
    tools: Tools
    """Functions that hosts offer."""
    batches: Batches
    """Batches that workers of the fleet drive."""

    def __init__(self, endpoint: Endpoint, context: ssl.SSLContext | None, retry_s: float) -> None:
        self._endpoint = endpoint
        self._context = context
        self._api = Api(endpoint, Pool(endpoint, context), retry_s)
        self._me: Me | None = None
        self.approvals = Approvals(self._api)
        self.tools = Tools(self._api)
        self.batches = Batches(self._api)

    @classmethod
    def connect(
        cls,
        url: str | None = None,
        api_key: str | None = None,
        *,
        ssl_context: ssl.SSLContext | None = None,
        retry_ms: float = RETRY_MS,
    ) -> Fleet:
        """Connects to the API that the arguments name, else `SHELLFLEET_URL` and `SHELLFLEET_API_KEY`, else the fleet
        that `shellfleet up` started for this user: `async with Fleet.connect() as fleet`, or `await Fleet.connect()`.

        Close it when it is no longer used. Raises COMMAND_INVALID for an invalid address, QUEUE_UNAVAILABLE when there
        is no fleet or it cannot be reached, and UNAUTHORIZED for a wrong key.
        """
        endpoint = find_endpoint(url, api_key, os.environ)
        context = (ssl_context or ssl.create_default_context()) if endpoint.secure else None
        return cls(endpoint, context, retry_ms / 1_000)

    def __repr__(self) -> str:
        return f"<Fleet {self._endpoint.url}>"

    def __await__(self) -> Generator[object, None, Fleet]:
        return self._connect().__await__()

    async def __aenter__(self) -> Fleet:
        return await self._connect()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _connect(self) -> Fleet:
        # An API that cannot be reached now is reported at once.
        patient, self._api.retry_s = self._api.retry_s, 0
        try:
            self._me = from_json(Me, await self._api.call("GET", path_of("me")))
        except BaseException:
            await self.close()
            raise
        self._api.retry_s = patient
        return self

    @property
    def me(self) -> Me:
        """Name, tenant and scopes of the key."""
        if self._me is None:
            raise invalid("The Fleet is not connected. Use `async with Fleet.connect()`, or `await Fleet.connect()`.")
        return self._me

    async def session(self, id: str, spec: SessionSpec | None = None, **fields: Unpack[SessionSpec]) -> Session:
        """Opens a session, or attaches to the open one of this id. It waits for no host and takes no slot.

        The spec is a dictionary, keyword arguments, or both. Without one, an open session of any spec is returned.
        Raises SESSION_SPEC_INVALID for an invalid spec or id, and SESSION_CONFLICT when the open session has another
        spec.
        """
        given = _merge(spec, fields)
        await self._api.call("PUT", path_of("sessions", id), body=given)
        return Session(self._api, id, given)

    async def attach(self, id: str) -> Session | None:
        """Returns the newest session of this id, open or closed. Returns None if there is none, and creates none."""
        try:
            await self._api.call("GET", path_of("sessions", id))
        except ShellfleetError as error:
            if error.code == "SESSION_NOT_FOUND":
                return None
            raise
        return Session(self._api, id, None)

    async def sessions(
        self, *, state: SessionState | None = None, labels: dict[str, str] | None = None, all: bool = False
    ) -> AsyncGenerator[SessionInfo]:
        """Yields the open sessions of this tenant, in no particular order.

        With `all` or the state `closed` it includes closed sessions whose output can still be read.
        """
        query = {"state": state, "all": all, "label": [f"{name}={value}" for name, value in (labels or {}).items()]}
        async with aclosing(pages(self._api, path_of("sessions"), query)) as found:
            async for item in found:
                yield from_json(SessionInfo, item)

    async def run(self, script: str, *, spec: SessionSpec | None = None, **options: Unpack[RunOptions]) -> Result:
        """Runs one command in a separate session, which is closed afterwards, and returns its Result.

        With an `idempotency_key`, a second call with the same script and options, from any process, returns the Result
        of the first. Cancelling the task that awaits this cancels the command. Raises as `session` and `Session.run`.
        """
        submission = to_submission(script, options)
        if submission.stream is not None or options.get("on_output") is not None:
            return await self._run_in_session(submission, script, spec, options)
        body = submission.body if spec is None else {**submission.body, "spec": to_json(spec)}
        try:
            while True:
                reply = await self._post_run(body, submission, WAIT_S)
                if "outcome" in reply:
                    result = from_json(Result, reply)
                    return result if submission.own_key else replace(result, deduplicated=False)
        except asyncio.CancelledError:
            await self._close_run(submission.key)
            raise

    async def _run_in_session(
        self, submission: Submission, script: str, spec: SessionSpec | None, options: RunOptions
    ) -> Result:
        session = await self.session(one_shot_id(submission.key), spec)
        try:
            result = await session.run(script, **options)
        except BaseException as error:
            if ends_one_shot(error, options):
                await session.close()
            raise
        await session.close()
        return result

    async def _post_run(self, body: Json, submission: Submission, wait_s: int) -> Json:
        headers = {**submission.headers, "prefer": f"wait={wait_s}"}
        return await self._api.call("POST", path_of("run"), body=body, headers=headers)

    async def _close_run(self, key: str) -> None:
        """Closes the session of a `run`, which ends its command."""
        session = Session(self._api, one_shot_id(key), None)
        try:
            await asyncio.wait_for(session.close(), CANCEL_WITHIN_S)
        except (ShellfleetError, asyncio.TimeoutError):
            pass

    async def command(self, id: str) -> Command:
        """Finds a command by its id, also one of another process. Raises COMMAND_INVALID or RESULT_EXPIRED."""
        info = from_json(CommandInfo, await self._api.call("GET", path_of("commands", id)))
        return Command(self._api, info.id, info.session_id)

    async def batch(self, tasks: Iterable[Task], **options: Unpack[BatchOptions]) -> AsyncGenerator[TaskResult]:
        """Runs tasks, each in a separate session, and yields their results in the order of their ends.

        The batch is one of `fleet.batches`: it goes on when this process ends.
        """
        info = await self.batches.submit(tasks, **options)
        async with aclosing(self.batches.results(info.name)) as results:
            async for result in results:
                yield result

    async def hosts(self) -> list[HostInfo]:
        """Lists the registered hosts of the fleet, with their last heartbeats."""
        reply = await self._api.call("GET", path_of("hosts"))
        return [from_json(HostInfo, item) for item in reply["items"]]

    async def events(self) -> AsyncGenerator[FleetEvent]:
        """Yields what happens in the fleet from now on. The key needs the scope `admin`.

        What happened while no connection was there is not yielded.
        """
        async with aclosing(follow(self._api, path_of("events"))) as events:
            async for event in events:
                yield from_json(FleetEvent, {**event.data, "type": event.type})

    async def close(self) -> None:
        """Ends this client's waits with QUEUE_UNAVAILABLE, and closes its connections. Accepted commands go on."""
        await self._api.close()


def one_shot_id(key: str) -> str:
    """Returns the id of the session of a `run`. It depends on the idempotency key alone, as in the API and the SDK."""
    with only_sendable():
        return f"run-{hashlib.sha256(key.encode()).hexdigest()}"


def ends_one_shot(error: BaseException, options: RunOptions) -> bool:
    """Tells whether the session of a `run` is closed after an error.

    It stays after a failure of the fleet if the caller gave a key: that key finds the command again, and others may
    wait for it.
    """
    return not isinstance(error, ShellfleetError) or options.get("idempotency_key") is None


def _merge(spec: SessionSpec | None, fields: SessionSpec) -> Json:
    return None if spec is None and not fields else to_json({**(spec or {}), **fields})
