"""Batches: many tasks, each in a session of its own, which workers of the fleet drive."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from ._http.api import Api, path_of
from ._paging import pages
from ._wire import from_json, to_json
from .errors import ShellfleetError
from .infos import BatchInfo, TaskResult
from .options import BatchOptions, Task

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Batches:
    """Batches that workers of the fleet drive, so that no process of the submitter has to stay."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def submit(self, tasks: Iterable[Task], **options: Unpack[BatchOptions]) -> BatchInfo:
        """Submits a batch. Submitting the same batch again under its name has no effect.

        Raises COMMAND_INVALID for an invalid task, BATCH_TOO_LARGE, QUOTA_EXCEEDED, and IDEMPOTENCY_CONFLICT when
        another batch has the name.
        """
        given = to_json(dict(options))
        name = given.pop("name", None)
        body = {"tasks": to_json(list(tasks)), "options": given, **({} if name is None else {"name": name})}
        return from_json(BatchInfo, await self._api.call("POST", path_of("batches"), body=body))

    async def list(self) -> list[BatchInfo]:
        """Lists the batches of this tenant, the newest first, until their retention is over."""
        # The API has the order of names, in which its pages stay complete while batches are added.
        batches = [from_json(BatchInfo, item) async for item in pages(self._api, path_of("batches"), {})]
        return sorted(batches, key=lambda one: one.submitted_at, reverse=True)

    async def get(self, name: str) -> BatchInfo:
        """Reads how far a batch is. Raises BATCH_NOT_FOUND."""
        return from_json(BatchInfo, await self._api.call("GET", path_of("batches", name)))

    async def results(self, name: str, *, follow: bool = True) -> AsyncGenerator[TaskResult]:
        """Yields the results of a batch, those that are stored first, until it has ended.

        With `follow=False` it ends after those that are stored. Over broken connections, no result is yielded twice.
        Raises BATCH_NOT_FOUND, and the error of a batch that failed as a whole.
        """
        count = 0
        while True:
            broken = False
            try:
                async with aclosing(self._lines(name, follow)) as lines:
                    number = 0
                    async for line in lines:
                        number += 1
                        # After a broken connection, the lines come again from the first one.
                        if number > count:
                            count = number
                            yield from_json(TaskResult, json.loads(line))
            except ShellfleetError as error:
                if not error.retryable:
                    raise
                broken = True
            info = await self.get(name)
            if info.error is not None:
                raise ShellfleetError(
                    info.error.code, info.error.message, retryable=info.error.retryable, context=info.error.context
                )
            if not broken and (not follow or info.state == "ended"):
                return

    async def _lines(self, name: str, follow: bool) -> AsyncGenerator[bytes]:
        rest = b""
        async with self._api.send("GET", path_of("batches", name, "results"), query={"follow": follow}) as response:
            async with aclosing(self._api.pieces(response)) as pieces:
                async for piece in pieces:
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield line

    async def cancel(self, name: str) -> bool:
        """Ends a batch: no further task starts, and running tasks are cancelled. Returns False if it had ended."""
        reply = await self._api.call("POST", path_of("batches", name, "cancel"))
        return reply["cancelled"]

    async def remove(self, name: str) -> None:
        """Removes a batch that has ended, with its results. Raises COMMAND_INVALID before its end."""
        await self._api.call("DELETE", path_of("batches", name))
