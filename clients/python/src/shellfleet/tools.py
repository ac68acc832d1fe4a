"""Functions that hosts offer."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from ._http.api import Api, path_of
from ._http.follow import follow
from ._wire import from_json
from .infos import ToolEvent, ToolInfo, ToolResult


class Tools:
    """Functions that hosts offer. Each call runs in a separate process, outside the sessions."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self) -> list[ToolInfo]:
        """Lists the tools that live hosts offer now, by name."""
        reply = await self._api.call("GET", path_of("tools"))
        return [from_json(ToolInfo, item) for item in reply["items"]]

    async def call(self, name: str, args: Any = None, *, timeout_ms: float | None = None) -> ToolResult:
        """Calls a tool with JSON arguments. A call that fails returns a result with `ok` False.

        A call is sent once: when the connection breaks, QUEUE_UNAVAILABLE is raised and it may have run.
        """
        body: dict[str, Any] = {"args": {} if args is None else args}
        if timeout_ms is not None:
            body["timeoutMs"] = timeout_ms
        reply = await self._api.call("POST", path_of("tools", name, "call"), body=body, once=True, patient=True)
        return from_json(ToolResult, reply)

    async def watch(self) -> AsyncGenerator[ToolEvent]:
        """Yields `tool.added` for every offered tool, then each change and call of this tenant."""
        async with aclosing(follow(self._api, path_of("tools", "events"))) as events:
            async for event in events:
                yield from_json(ToolEvent, {**event.data, "type": event.type})
