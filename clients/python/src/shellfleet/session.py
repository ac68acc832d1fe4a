"""Sessions: persistent shells."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._http.api import WAIT_S, Api, path_of
from ._http.follow import follow
from ._submission import Submission, to_submission
from ._wire import Json, from_json, to_plain
from .command import CANCEL_WITHIN_S, Command, OutputDecoder, cancel_within
from .errors import ShellfleetError
from .events import OutputChunk, SessionEvent
from .files import Files
from .infos import SessionInfo
from .options import RunOptions, SubmitOptions
from .results import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

CALLER_LEFT = "The caller was cancelled"


class Session:
    """A persistent shell: its commands run one at a time, in the order in which they were accepted.

    They share directory, variables and functions. `async with` closes the session at the end of the block; leave it out
    for a session that others use, or that is to outlive the block.
    """

    id: str
    """Id of the session, which the caller chose."""
    files: Files
    """File operations in the sandbox."""

    def __init__(self, api: Api, id: str, spec: Json) -> None:
        self._api = api
        self._spec = spec
        self._closed = False
        self.id = id
        self.files = Files(api, id)

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    async def run(self, script: str, **options: Unpack[RunOptions]) -> Result:
        """Runs a command and returns its Result, also when the command fails.

        Cancelling the task that awaits this cancels the command. Raises as `submit`.
        """
        on_output = options.pop("on_output", None)
        submission = self._to_submission(script, options)
        if on_output is None and submission.stream is None:
            return await self._run_at_once(submission)
        command = await self._begin(submission, cancels=True)
        try:
            if on_output is not None:
                async with aclosing(command.output()) as chunks:
                    async for chunk in chunks:
                        on_output(chunk)
            return await command.result()
        except ShellfleetError:
            raise
        except BaseException:
            await cancel_within(command, CALLER_LEFT)
            raise

    async def _run_at_once(self, submission: Submission) -> Result:
        """Submits a command and gets its Result in one request, if it ends soon."""
        try:
            reply = await self._post(submission, wait=True)
        except asyncio.CancelledError:
            await self._cancel_within(submission)
            raise
        if "outcome" in reply:
            result = from_json(Result, reply)
            return result if submission.own_key else replace(result, deduplicated=False)
        command = self._to_command(reply, submission)
        try:
            return await command.result()
        except asyncio.CancelledError:
            await cancel_within(command, CALLER_LEFT)
            raise

    async def submit(self, script: str, **options: Unpack[SubmitOptions]) -> Command:
        """Submits a command and returns it when it is accepted.

        Raises COMMAND_INVALID for an invalid script or options, SESSION_CLOSED, QUOTA_EXCEEDED, IDEMPOTENCY_CONFLICT,
        and QUEUE_UNAVAILABLE when the fleet cannot be reached: then the same `idempotency_key` makes it safe to submit
        again. A stdin of pieces is sent in the background. Cancelling the task that awaits this cancels the command,
        unless an `idempotency_key` of the caller can still find it.
        """
        submission = self._to_submission(script, options)
        return await self._begin(submission, cancels=not submission.own_key)

    async def _begin(self, submission: Submission, *, cancels: bool) -> Command:
        try:
            reply = await self._post(submission, wait=False)
        except asyncio.CancelledError:
            if cancels:
                await self._cancel_within(submission)
            raise
        return self._to_command(reply, submission)

    def _to_submission(self, script: str, options: SubmitOptions | RunOptions) -> Submission:
        if self._closed:
            raise ShellfleetError("SESSION_CLOSED", f"Session {self.id} is closed. fleet.session(id) opens it again.")
        return to_submission(script, options)

    async def _post(self, submission: Submission, *, wait: bool) -> Json:
        headers = {**submission.headers, **({"prefer": f"wait={WAIT_S}"} if wait else {})}
        body = submission.body if self._spec is None else {**submission.body, "spec": self._spec}
        return await self._api.call("POST", path_of("sessions", self.id, "commands"), body=body, headers=headers)

    def _to_command(self, reply: Json, submission: Submission) -> Command:
        deduplicated = submission.own_key and bool(reply.get("deduplicated"))
        # A command that was submitted before already has its stdin.
        stdin = None if deduplicated else submission.stream
        return Command(self._api, reply["id"], self.id, deduplicated=deduplicated, stdin=stdin)

    async def _cancel_within(self, submission: Submission) -> None:
        """Cancels a command whose submit was cancelled. The API may have accepted it: the same key finds it."""
        try:
            reply = await asyncio.wait_for(self._post(submission, wait=False), CANCEL_WITHIN_S)
        except (ShellfleetError, asyncio.TimeoutError):
            return
        await cancel_within(Command(self._api, reply["id"], self.id), CALLER_LEFT)

    async def restart(self) -> None:
        """Replaces the shell, in order with the commands. Raises as `submit`, and RESTART_DENIED.

        It is asked for once: when the connection breaks, QUEUE_UNAVAILABLE is raised and the shell may be a new one.
        """
        await self._api.call("POST", path_of("sessions", self.id, "restart"), once=True, patient=True)

    async def close(self, *, purge: bool = False) -> None:
        """Ends all commands as cancellations, and frees sandbox and slot.

        Returns when that is done, or at once if the host is unreachable. With `purge`, containers that a host keeps for
        a post-mortem are removed too.
        """
        self._closed = True
        await self._api.call("DELETE", path_of("sessions", self.id), query={"purge": purge}, patient=True)

    async def info(self) -> SessionInfo:
        """Returns the current state. Raises SESSION_NOT_FOUND."""
        return from_json(SessionInfo, await self._api.call("GET", path_of("sessions", self.id)))

    async def events(self, *, after: str | None = None) -> AsyncGenerator[SessionEvent]:
        """Yields every event, live, from the beginning or after the event `after`, until the session is closed.

        Reading goes on over broken connections and a restart of the API, without a lost or doubled event.
        """
        decoders: dict[str, OutputDecoder] = {}
        async with aclosing(follow(self._api, path_of("sessions", self.id, "events"), after=after)) as events:
            async for event in events:
                yield _to_event(event.id, event.type, event.data, decoders)
                if event.type == "session.closed":
                    return

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _to_event(id: str, type: str, data: Json, decoders: dict[str, OutputDecoder]) -> SessionEvent:
    """Returns an event. The text of output needs one decoder for each command."""
    command_id: str | None = data.get("commandId")
    return SessionEvent(
        id=id,
        at=data["at"],
        type=type,
        data=_to_data(id, type, command_id or "", data.get("data") or {}, decoders),
        command_id=command_id,
    )


def _to_data(
    id: str, type: str, command_id: str, data: Json, decoders: dict[str, OutputDecoder]
) -> OutputChunk | Result | dict[str, Any]:
    if type == "command.output":
        return decoders.setdefault(command_id, OutputDecoder()).decode(id, data)
    if type == "command.completed":
        decoders.pop(command_id, None)
        return from_json(Result, data)
    return to_plain(data)
