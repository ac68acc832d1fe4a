"""The fleet and the API that tests/e2e/python-client.test.ts has started."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import itertools
import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shellfleet import Fleet, Session
from shellfleet.options import SessionSpec

_numbers = itertools.count()
HOST: SessionSpec = {"policy": "host"}
"""Spec of sessions without containers, which start in milliseconds."""


@dataclass(frozen=True)
class Stage:
    """What the test run tells: the API, a key of each kind, and how another server is started."""

    url: str
    key: str
    operator_key: str
    """Key that answers questions of `key`, which may not answer its own."""
    namespace: str
    serve: list[str]


@functools.cache
def stage() -> Stage:
    """Returns what the test run tells."""
    return Stage(**json.loads(os.environ["SHELLFLEET_TEST_STAGE"]))


def connect(url: str | None = None) -> Fleet:
    """Returns a client of the API of the test run, or of another one."""
    return Fleet.connect(url or stage().url, stage().key)


def new_id() -> str:
    """Returns the id of a session that no test has used."""
    return f"py-{os.getpid()}-{next(_numbers)}"


class LiveTest(unittest.IsolatedAsyncioTestCase):
    """A test with a client of its own, which leaves no socket, task or thread behind."""

    fleet: Fleet

    async def asyncSetUp(self) -> None:
        self._before = (set(threading.enumerate()), sockets())
        self.fleet = await connect()

    async def asyncTearDown(self) -> None:
        await self.fleet.close()
        gc.collect()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        # The loop's own helper of asynchronous generators may still close one.
        await until(lambda: all(task.done() for task in others))
        self.assertEqual((set(threading.enumerate()), sockets()), self._before)

    async def session(self, spec: SessionSpec | None = None) -> Session:
        """Opens a session on the host, which is closed after the test."""
        session = await self.fleet.session(new_id(), {**HOST, **(spec or {})})
        self.addAsyncCleanup(close_again, session.id)
        return session


async def close_again(id: str) -> None:
    """Closes a session, also one that is closed already."""
    async with connect() as fleet:
        session = await fleet.attach(id)
        if session is not None:
            await session.close()


async def until(condition: Callable[[], bool | Awaitable[bool]], within_s: float = 20) -> None:
    """Waits until a condition holds."""
    end = time.monotonic() + within_s
    while True:
        holds = condition()
        if holds if isinstance(holds, bool) else await holds:
            return
        if time.monotonic() > end:
            raise AssertionError(f"It did not hold within {within_s} s.")
        await asyncio.sleep(0.02)


def sockets() -> int:
    """Counts the sockets of this process."""
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            count += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return count


class OwnServer:
    """A further server of the fleet, which a test may kill and start again at the same address."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the server, and does not wait for it."""
        env = {**os.environ, "SHELLFLEET_API_PORT": str(self._port)}
        self._process = subprocess.Popen(stage().serve, env=env, stdout=subprocess.DEVNULL)

    async def ready(self) -> None:
        """Waits until the server answers."""

        def answers() -> bool:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/healthz") as reply:
                return reply.status == 200
            return False

        await until(answers)

    def end(self, how: int = signal.SIGKILL) -> None:
        """Ends the server, and waits for that."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait()
            self._process = None
