"""Measures what the Python client adds to plain HTTP: the time of one `true`, in turns, in one warm session.

npm run python-latency [-- RUNS]: uses the fleet that is up. Prints percentiles in ms, as JSON.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import statistics
import sys
import time
import uuid

from shellfleet import Fleet, sync
from shellfleet._settings import Endpoint, find_endpoint

WARM_UP = 50


class PlainHttp:
    """The same request by http.client of the standard library, over one connection."""

    def __init__(self, endpoint: Endpoint, session: str) -> None:
        self._connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
        self._path = f"/v1/sessions/{session}/commands"
        self._headers = {"authorization": f"Bearer {endpoint.key}", "content-type": "application/json"}

    def run(self) -> None:
        headers = {**self._headers, "prefer": "wait=30", "idempotency-key": uuid.uuid4().hex}
        self._connection.request("POST", self._path, json.dumps({"script": "true"}), headers)
        assert json.loads(self._connection.getresponse().read())["outcome"] == "success"

    def close(self) -> None:
        self._connection.close()


async def measure(fleet: Fleet, endpoint: Endpoint, runs: int) -> dict[str, list[float]]:
    """Returns the times in ms of each way, with and without asyncio."""
    times: dict[str, list[float]] = {"plain": [], "client": [], "sync": []}
    session = await fleet.session(f"latency-{uuid.uuid4().hex[:8]}")
    plain = PlainHttp(endpoint, session.id)
    with sync.Fleet.connect() as blocking:
        blocked = blocking.attach(session.id)
        assert blocked is not None
        for turn in range(WARM_UP + runs):
            began = time.perf_counter()
            plain.run()
            between = time.perf_counter()
            await session.run("true")
            after = time.perf_counter()
            blocked.run("true")
            end = time.perf_counter()
            if turn >= WARM_UP:
                times["plain"].append(1_000 * (between - began))
                times["client"].append(1_000 * (after - between))
                times["sync"].append(1_000 * (end - after))
    plain.close()
    await session.close()
    return times


def percentiles(times: list[float]) -> dict[str, float]:
    """Returns the percentiles that matter."""
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {name: round(cuts[at - 1], 2) for name, at in (("p50", 50), ("p95", 95), ("p99", 99))}


async def main(runs: int) -> None:
    async with Fleet.connect() as fleet:
        times = await measure(fleet, find_endpoint(None, None, os.environ), runs)
    found = {way: percentiles(of_way) for way, of_way in times.items()}
    added = {way: round(found[way]["p95"] - found["plain"]["p95"], 2) for way in ("client", "sync")}
    print(json.dumps({"runs": runs, **found, "addedP95": added}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 500))
