"""Lists of batches."""

import json
import unittest

from scripted import answer, scripted
from shellfleet.batches import Batches


def page(*batches: tuple[str, str], cursor: str | None = None) -> bytes:
    """Returns a page of the list of the API: names, each with the time of its submission."""
    items = [
        {"name": name, "submittedAt": at, "state": "ended", "submittedBy": "me", "tasks": 1, "results": 1}
        for name, at in batches
    ]
    return json.dumps({"items": items, **({} if cursor is None else {"next": cursor})}).encode()


class Lists(unittest.IsolatedAsyncioTestCase):
    async def test_have_the_newest_batch_first_over_all_pages(self) -> None:
        first = page(("a", "2026-01-02T00:00:00.000Z"), ("b", "2026-01-01T00:00:00.000Z"), cursor="b")
        second = page(("c", "2026-01-03T00:00:00.000Z"))
        async with scripted(answer(first), answer(second)) as (_server, api):
            batches = await Batches(api).list()
            self.assertEqual([one.name for one in batches], ["c", "a", "b"])
