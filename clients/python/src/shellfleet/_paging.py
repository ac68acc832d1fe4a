"""Lists of the API, page by page."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from ._http.api import Api, Query
from ._wire import Json

_PAGE = 500


async def pages(api: Api, path: str, query: Query) -> AsyncGenerator[Json]:
    """Yields the items of a list, over all its pages."""
    cursor: str | None = None
    while True:
        reply = await api.call("GET", path, query={**query, "limit": _PAGE, "cursor": cursor})
        for item in reply["items"]:
            yield item
        cursor = reply.get("next")
        if cursor is None:
            return
