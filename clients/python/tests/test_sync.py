"""The client without await."""

import asyncio
import gc
import inspect
import os
import signal
import subprocess
import sys
import threading
import unittest
import warnings
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any
from unittest.mock import patch

import shellfleet
import shellfleet.sync
from shellfleet import ShellfleetError
from shellfleet.sync import _portal as portal_module
from shellfleet.sync._portal import Portal


def public_calls(cls: type) -> dict[str, list[tuple[str, object]]]:
    """Returns the parameters of each public method of a class, and its properties."""
    found: dict[str, list[tuple[str, object]]] = {}
    for name, member in inspect.getmembers(cls):
        if not name.startswith("_") and callable(member):
            parameters = inspect.signature(member).parameters.values()
            found[name] = [(one.name, one.default) for one in parameters]
        elif isinstance(member, property):
            found[name] = []
    return found


class Names(unittest.TestCase):
    def test_are_those_of_the_client_with_await(self) -> None:
        for name in shellfleet.sync.__all__:
            ours, theirs = (public_calls(getattr(module, name)) for module in (shellfleet.sync, shellfleet))
            self.assertEqual(ours, theirs, name)

    def test_have_docstrings_on_both_sides(self) -> None:
        for module in (shellfleet, shellfleet.sync):
            for name in shellfleet.sync.__all__:
                cls = getattr(module, name)
                without = [call for call in public_calls(cls) if not inspect.getdoc(getattr(cls, call))]
                self.assertEqual((inspect.getdoc(cls) is None, without), (False, []), name)


class Threads(unittest.TestCase):
    def setUp(self) -> None:
        self.before = set(threading.enumerate())
        self.portal = Portal()
        self.addCleanup(self.portal.close)

    def left(self) -> set[threading.Thread]:
        return set(threading.enumerate()) - self.before

    def test_are_not_there_in_a_fork_which_is_told_so(self) -> None:
        async def work() -> None:
            pass

        with warnings.catch_warnings():
            # Python 3.12 warns of a fork of a process with threads.
            warnings.simplefilter("ignore")
            child = os.fork()
        if child == 0:
            signal.alarm(5)
            told = 1
            try:
                self.portal.call(work())
            except ShellfleetError as error:
                told = 0 if error.code == "COMMAND_INVALID" and self.portal.is_closed else 2
            finally:
                os._exit(told)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.portal.call(work())

    def test_end_with_the_fleet(self) -> None:
        async def work() -> int:
            pulled = [piece async for piece in self.portal.pull(iter([1, 2, 3]))]
            return sum(pulled)

        self.assertEqual(self.portal.call(work()), 6)
        self.assertNotEqual(self.left(), set())
        self.portal.close()
        self.assertEqual(self.left(), set())
        self.portal.close()

    def test_let_sources_that_block_keep_nobody_waiting(self) -> None:
        goes_on = threading.Event()

        def blocking() -> Generator[bytes]:
            yield b"first"
            goes_on.wait()

        async def begin(source: AsyncGenerator[bytes]) -> bytes:
            first = await source.__anext__()
            waiting.append(asyncio.ensure_future(source.__anext__()))
            return first

        waiting: list[asyncio.Future[bytes]] = []
        sources = [self.portal.pull(blocking()) for _ in range(40)]
        self.assertEqual([self.portal.call(begin(one)) for one in sources], [b"first"] * 40)
        closing = threading.Thread(target=self.portal.close, daemon=True)
        closing.start()
        closing.join(10)
        self.assertFalse(closing.is_alive())
        goes_on.set()
        for thread in self.left() - {closing}:
            thread.join(10)
        self.assertEqual(self.left(), set())

    def test_refuse_a_call_of_what_runs_in_them(self) -> None:
        async def work() -> None:
            pass

        async def call() -> None:
            self.portal.call(work())

        with self.assertRaisesRegex(ShellfleetError, "COMMAND_INVALID"):
            self.portal.call(call())

    def test_keep_no_program_from_its_end(self) -> None:
        program = """
import asyncio
from shellfleet.sync._portal import Portal

async def numbers():
    yield 1
    await asyncio.sleep(60)

portal = Portal()
begun = portal.iterate(numbers())
print(next(begun))"""
        done = subprocess.run([sys.executable, "-c", program], timeout=20, check=True, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("1\n", ""))

    def test_leave_no_call_of_another_thread_without_an_answer_at_their_end(self) -> None:
        async def work() -> None:
            pass

        async def wait() -> None:
            await asyncio.sleep(60)

        codes: list[str] = []

        def repeat(portal: Portal, call: Callable[[], Coroutine[Any, Any, None]]) -> None:
            try:
                while True:
                    portal.call(call())
            except ShellfleetError as error:
                codes.append(error.code)

        for _ in range(20):
            portal = Portal()
            callers = [threading.Thread(target=repeat, args=(portal, call), daemon=True) for call in (work, work, wait)]
            closers = [threading.Thread(target=portal.close) for _ in range(2)]
            for thread in [*callers, *closers]:
                thread.start()
            for thread in [*callers, *closers]:
                thread.join(10)
                self.assertFalse(thread.is_alive())
        self.assertEqual(codes, ["QUEUE_UNAVAILABLE"] * 60)
        self.assertEqual(self.left(), {self.portal._thread})  # pyright: ignore[reportPrivateUsage]

    def test_end_when_no_api_can_be_reached(self) -> None:
        with self.assertRaises(ShellfleetError) as caught:
            shellfleet.sync.Fleet.connect("http://127.0.0.1:9", "k")
        self.assertEqual(caught.exception.code, "QUEUE_UNAVAILABLE")
        self.portal.close()
        self.assertEqual(self.left(), set())

    def test_are_shared_by_calls_of_several_threads(self) -> None:
        async def thread() -> int:
            await asyncio.sleep(0)
            return threading.get_ident()

        seen: list[int] = []
        callers = [threading.Thread(target=lambda: seen.append(self.portal.call(thread()))) for _ in range(5)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        self.assertEqual((len(seen), len(set(seen))), (5, 1))

    def test_cancel_their_task_when_ctrl_c_interrupts_a_call(self) -> None:
        story: list[str] = []

        async def work() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0.05)
                story.append("cancelled")
                raise

        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            self.portal.call(work())
        timer.join()
        self.assertEqual(story, ["cancelled"])

    def test_keep_no_caller_waiting_who_presses_ctrl_c_for_long(self) -> None:
        async def stay() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                await asyncio.sleep(0.2)

        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        with patch.object(portal_module, "_INTERRUPTED_WITHIN_S", 0.01), self.assertRaises(KeyboardInterrupt):
            self.portal.call(stay())
        timer.join()


class Iterators(unittest.TestCase):
    def setUp(self) -> None:
        self.portal = Portal()
        self.addCleanup(self.portal.close)
        self.story: list[str] = []

    async def count(self, to: int) -> AsyncGenerator[int]:
        try:
            for number in range(to):
                yield number
        finally:
            await asyncio.sleep(0)
            self.story.append("closed")

    def test_yield_everything_and_close_their_source(self) -> None:
        self.assertEqual(list(self.portal.iterate(self.count(3))), [0, 1, 2])
        self.assertEqual(self.story, ["closed"])

    def test_close_their_source_when_the_loop_around_them_ends(self) -> None:
        numbers = self.portal.iterate(self.count(3))
        for number in numbers:
            if number == 1:
                break
        del numbers
        gc.collect()
        self.assertEqual(self.story, ["closed"])

    def test_are_harmless_after_the_fleet(self) -> None:
        numbers = self.portal.iterate(self.count(3))
        self.assertEqual(next(numbers), 0)
        self.portal.close()
        numbers.close()
        self.assertEqual(self.story, ["closed"])
