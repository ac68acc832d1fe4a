"""The event loop behind a Fleet without await."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Generator, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, TypeVar

from .._http.pool import closed_here
from ..errors import ShellfleetError, invalid

T = TypeVar("T")

_END: Any = object()
_INTERRUPTED_WITHIN_S = 15.0


# L1. The thread lives from the constructor to `close`, and all sockets of the Fleet belong to its loop.
# L2. A call that is interrupted, as by Ctrl-C, cancels its task, and waits for it before it raises.
# L3. No call begins after `close` has, so `close` ends every task, and each call gets its value or an error.
class Portal:
    """An event loop in a thread of its own, which runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._beginning = threading.Lock()
        self._closing = False
        # A Fleet that was not closed does not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="shellfleet", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop, and waits for it.

        Raises QUEUE_UNAVAILABLE after `close`, and COMMAND_INVALID in a fork, which has no thread.
        """
        if os.getpid() != self._pid:
            work.close()
            raise invalid("This Fleet belongs to the process that was forked. Connect a new one in this process.")
        done: Future[T] = Future()
        tasks: list[asyncio.Task[T]] = []

        def finish(task: asyncio.Task[T]) -> None:
            if task.cancelled():
                error = closed_here() if self._closing else asyncio.CancelledError()
            else:
                error = task.exception()
            if error is None:
                done.set_result(task.result())
            else:
                done.set_exception(error)

        def start() -> None:
            task = self._loop.create_task(work)
            tasks.append(task)
            task.add_done_callback(finish)

        with self._beginning:
            if not self._closing:
                self._loop.call_soon_threadsafe(start)
            else:
                work.close()
                raise closed_here()
        try:
            return done.result()
        except BaseException:
            if not done.done():
                self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
                self._wait(done)
            raise

    @staticmethod
    def _wait(done: Future[Any]) -> None:
        try:
            done.exception(_INTERRUPTED_WITHIN_S)
        except FutureTimeoutError:
            pass

    def iterate(self, source: AsyncGenerator[T]) -> Generator[T]:
        """Yields what an asynchronous generator yields."""
        try:
            while (item := self.call(_next(source))) is not _END:
                yield item
        finally:
            if not self.is_closed and threading.current_thread() is not self._thread:
                self._close_source(source)

    def _close_source(self, source: AsyncGenerator[Any]) -> None:
        try:
            self.call(source.aclose())
        except ShellfleetError:
            # `close` has closed it.
            if not self.is_closed:
                raise

    async def pull(self, pieces: Iterable[T] | AsyncIterable[T]) -> AsyncGenerator[T]:
        """Yields the items of an iterable, which may block, outside of the loop's thread."""
        if isinstance(pieces, AsyncIterable):
            async for piece in pieces:
                yield piece
            return
        iterator = iter(pieces)
        while (piece := await self._loop.run_in_executor(None, next, iterator, _END)) is not _END:
            yield piece

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or this process is a fork, which has nothing to close."""
        return self._closing or os.getpid() != self._pid

    def close(self) -> None:
        """Ends the loop and its threads, or waits until another thread has. Does nothing in a fork."""
        if os.getpid() != self._pid:
            return
        with self._beginning:
            is_first, self._closing = not self._closing, True
        if not is_first:
            return self._thread.join()
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _end_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


async def _next(source: AsyncGenerator[T]) -> T:
    async for item in source:
        return item
    return _END
