"""Questions for a person."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from ._http.api import Api, path_of
from ._http.follow import follow
from ._paging import pages
from ._wire import from_json
from .infos import Approval
from .options import ApprovalScope


class Approvals:
    """The questions of this tenant for a person, and their answers. The key needs the scope `approve`.

    A key cannot answer what it submitted itself, unless the operator allows that (UNAUTHORIZED). An answer is sent once:
    when the connection breaks, QUEUE_UNAVAILABLE is raised and the answer may hold.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self, *, session_id: str | None = None) -> list[Approval]:
        """Returns pending questions, the oldest first."""
        found = pages(self._api, path_of("approvals"), {"sessionId": session_id})
        return [from_json(Approval, item) async for item in found]

    async def watch(self) -> AsyncGenerator[Approval]:
        """Yields every question that waits, then each one that is asked or changes, such as by its answer.

        After a broken connection the questions that wait are yielded again.
        """
        async with aclosing(follow(self._api, path_of("approvals", "events"))) as events:
            async for event in events:
                yield from_json(Approval, event.data)

    async def approve(self, id: str, *, scope: ApprovalScope = "command") -> None:
        """Approves a question, for its commands, its sessions, or every command that the amendment allows.

        Raises APPROVAL_NOT_FOUND when the question is not pending, and COMMAND_INVALID for the scope `prefix` of a
        question without amendment.
        """
        await self._api.call("POST", path_of("approvals", id, "approve"), body={"scope": scope}, once=True)

    async def deny(self, id: str, reason: str | None = None, *, abort: bool = False) -> None:
        """Denies a question: its commands end as `denial`, with the reason.

        With `abort`, the commands that wait behind the question in its sessions are cancelled.
        """
        body = {"abort": abort, **({} if reason is None else {"reason": reason})}
        await self._api.call("POST", path_of("approvals", id, "deny"), body=body, once=True)

    async def revoke(self, id: str) -> None:
        """Revokes an approval. Running commands continue. Raises APPROVAL_NOT_FOUND when no such approval holds."""
        await self._api.call("POST", path_of("approvals", id, "revoke"), once=True)
