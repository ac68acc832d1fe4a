"""The event loop behind a Fleet without await."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterable, Coroutine, Generator, Iterable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from queue import SimpleQueue
from typing import Any, TypeVar, cast

from .._http.pool import closed_here
from ..errors import ShellfleetError, invalid

T = TypeVar("T")

_END: Any = object()
_INTERRUPTED_WITHIN_S = 15.0


# L1. The thread lives from the constructor to `close`, and all sockets of the Fleet belong to its loop.
# L2. A call that is interrupted, as by Ctrl-C, cancels its task, and waits for it before it raises.
# L3. No call begins after `close` has, so `close` ends every task, and each call gets its value or an error.
# L4. Python stops the thread when the program ends. What is called later, as by a generator that is then removed, waits
#     for nothing.
# L5. Code of the caller that may block runs in other threads, and no call waits for the loop in the loop's thread.
class Portal:
    """An event loop in a thread of its own, which runs coroutines for other threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._beginning = threading.Lock()
        self._closing = False
        self._sources: set[_Source] = set()
        # A Fleet that was not closed does not keep the program from ending.
        self._thread = threading.Thread(target=self._run, name="shellfleet", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine in the loop, and waits for it.

        Raises QUEUE_UNAVAILABLE after `close`, and COMMAND_INVALID in a fork, which has no thread, and in the thread of
        the loop, where the wait would have no end.
        """
        if os.getpid() != self._pid:
            work.close()
            raise invalid("This Fleet belongs to the process that was forked. Connect a new one in this process.")
        if threading.current_thread() is self._thread:
            work.close()
            raise invalid("A Fleet without await cannot be used by a coroutine that it runs itself. Use another Fleet.")
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
            if not self.is_closed:
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
        """Yields the items of an iterable, which may block for any time, outside of the loop's thread."""
        if isinstance(pieces, AsyncIterable):
            async for piece in pieces:
                yield piece
            return
        source = _Source(self._loop, iter(pieces))
        self._sources.add(source)
        try:
            while (piece := await source.next()) is not _END:
                yield cast("T", piece)
        finally:
            source.stop()
            # `close` waits for the others.
            if not self._closing:
                self._sources.discard(source)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or there is nothing to close: in a fork, and at the end of the program."""
        return self._closing or os.getpid() != self._pid or sys.is_finalizing()

    def close(self) -> None:
        """Ends the loop and its threads, or waits until another thread has. Does nothing in a fork.

        The thread of a stdin whose iterable blocks ends with the next item of that iterable.
        """
        if os.getpid() != self._pid or sys.is_finalizing():
            return
        with self._beginning:
            is_first, self._closing = not self._closing, True
        if not is_first:
            return self._thread.join()
        asyncio.run_coroutine_threadsafe(self._end_all(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for source in self._sources:
            source.join()

    async def _end_all(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._loop.shutdown_asyncgens()
        await self._loop.shutdown_default_executor()


class _Source:
    """Takes the items of an iterable in a thread of its own, one when it is asked for.

    A pool of threads would let iterables that block keep the others waiting, and the end of the program too.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, items: Iterator[Any]) -> None:
        self._loop = loop
        self._items = items
        self._wanted: SimpleQueue[asyncio.Future[Any] | None] = SimpleQueue()
        self._blocked = False
        self._thread = threading.Thread(target=self._run, name="shellfleet-stdin", daemon=True)
        self._thread.start()

    async def next(self) -> Any:
        """Returns the next item, or _END."""
        item: asyncio.Future[Any] = self._loop.create_future()
        self._blocked = True
        self._wanted.put(item)
        return await item

    def stop(self) -> None:
        """Ends the thread, after the item that it is taking."""
        self._wanted.put(None)

    def join(self) -> None:
        """Waits for the end of the thread, unless the iterable blocks it."""
        if not self._blocked:
            self._thread.join()

    def _run(self) -> None:
        while (wanted := self._wanted.get()) is not None:
            item, error = self._take()
            self._blocked = False
            try:
                self._loop.call_soon_threadsafe(_settle, wanted, item, error)
            except RuntimeError:
                # The loop was closed meanwhile.
                return

    def _take(self) -> tuple[Any, Exception | None]:
        try:
            return next(self._items, _END), None
        except Exception as error:
            return None, error
        except BaseException as error:
            # As it is, it would end the thread of the loop.
            return None, RuntimeError(f"The source of a stdin raised {error!r}.")


def _settle(wanted: asyncio.Future[Any], item: Any, error: Exception | None) -> None:
    if wanted.done():
        return
    if error is None:
        wanted.set_result(item)
    else:
        wanted.set_exception(error)


async def _next(source: AsyncGenerator[T]) -> T:
    async for item in source:
        return item
    return _END
