"""Accepted commands."""

from __future__ import annotations

import asyncio
import codecs
from base64 import b64decode
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import aclosing
from dataclasses import replace
from typing import Literal

from ._http.api import WAIT_S, Api, path_of
from ._http.follow import follow
from ._wire import Json, from_json
from .errors import ShellfleetError, only_sendable
from .events import OutputChunk, StreamName
from .infos import CommandInfo
from .results import Result

CANCEL_WITHIN_S = 10.0


class OutputDecoder:
    """Decodes the events of output. A character whose bytes are in two chunks is in the text of the second one."""

    def __init__(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")
        self._decoders: dict[str, codecs.IncrementalDecoder] = {
            name: decoder("replace") for name in ("stdout", "stderr")
        }

    def decode(self, id: str, data: Json) -> OutputChunk:
        """Returns the chunk of an event."""
        stream: StreamName = data["stream"]
        content = b64decode(data["data"]) if data["encoding"] == "base64" else data["data"].encode()
        omitted = data.get("omittedBytes", 0)
        decoder = self._decoders[stream]
        # The beginning of a character and what follows a gap are no character.
        begun = decoder.decode(b"", final=True) if omitted else ""
        return OutputChunk(
            id=id,
            stream=stream,
            seq=data["seq"],
            data=content,
            text=begun + decoder.decode(content),
            omitted_bytes=omitted,
            omitted_because=data.get("omittedBecause"),
        )


class Command:
    """An accepted command. Any process can read its output and Result, write its stdin and cancel it."""

    id: str
    """`<session>.<ULID>`; `fleet.command(id)` finds the command from any process."""
    session_id: str
    """The session of the command."""
    deduplicated: bool
    """Whether the submit found this command by an idempotency key of the caller."""

    def __init__(
        self,
        api: Api,
        id: str,
        session_id: str,
        *,
        deduplicated: bool = False,
        stdin: AsyncIterable[bytes] | None = None,
    ) -> None:
        self._api = api
        self.id = id
        self.session_id = session_id
        self.deduplicated = deduplicated
        self._result: Result | None = None
        self._writing = asyncio.Lock()
        self._stdin_failure: Exception | None = None
        self._sending = None if stdin is None else api.spawn(self._stream_stdin(stdin))

    def __repr__(self) -> str:
        return f"<Command {self.id}>"

    async def output(self, *, after: str | None = None) -> AsyncGenerator[OutputChunk]:
        """Yields the redacted output, live, from the beginning or after the chunk `after`, to the command's end.

        Reading goes on over broken connections and a restart of the API, without a lost or doubled byte. Missing bytes
        are counted in `omitted_bytes` of a chunk. Raises RESULT_EXPIRED when the record of the command is gone.
        """
        decoder = OutputDecoder()
        async with aclosing(follow(self._api, path_of("commands", self.id, "events"), after=after)) as events:
            async for event in events:
                if event.type == "command.output":
                    yield decoder.decode(event.id, event.data)
                elif event.type == "command.completed":
                    self._keep(from_json(Result, event.data))
                    return

    async def result(self) -> Result:
        """Waits for the end, and returns the Result. Cancelling this wait does not cancel the command.

        Raises RESULT_EXPIRED when the record of the command is gone, and what the source of its stdin raised.
        """
        while self._result is None:
            info = await self._look(WAIT_S)
            if info.result is not None:
                self._keep(info.result)
        if self._stdin_failure is not None:
            raise self._stdin_failure
        return self._result

    async def info(self) -> CommandInfo:
        """Returns whether the command is `queued`, `running` or `ended`, with its Result if it has ended."""
        return await self._look(None)

    async def _look(self, wait_s: int | None) -> CommandInfo:
        headers = {} if wait_s is None else {"prefer": f"wait={wait_s}"}
        return from_json(CommandInfo, await self._api.call("GET", path_of("commands", self.id), headers=headers))

    def _keep(self, result: Result) -> None:
        self._result = replace(result, deduplicated=self.deduplicated)

    async def log(
        self, *, stream: Literal["stdout", "stderr"] | None = None, start: int = 0
    ) -> AsyncGenerator[bytes]:
        """Yields the whole redacted log, also what the stream does not carry, from the byte `start`.

        Raises LOG_EXPIRED when nothing is left of it, and also after what is left when some bytes no longer exist. Their
        number is `omittedBytes` in its context.
        """
        query = {"stream": stream, "from": start or None}
        async with (
            self._api.send("GET", path_of("commands", self.id, "log"), query=query) as response,
            aclosing(self._api.pieces(response)) as pieces,
        ):
            async for piece in pieces:
                yield piece
            omitted = int(response.trailers.get("omitted-bytes", "0"))
        if omitted > 0:
            message = f"{omitted} bytes of the log of command {self.id} no longer exist. All others were yielded."
            raise ShellfleetError("LOG_EXPIRED", message, context={"commandId": self.id, "omittedBytes": omitted})

    async def cancel(self, reason: str | None = None) -> bool:
        """Cancels the command. Returns False if it had already ended, however."""
        body = {} if reason is None else {"reason": reason}
        reply = await self._api.call("POST", path_of("commands", self.id, "cancel"), body=body)
        return reply["cancelled"]

    async def write(self, data: str | bytes | AsyncIterable[bytes]) -> None:
        """Appends to the stdin of a command with `stdin=OPEN`, in the order of the calls, also before its start.

        Raises COMMAND_INVALID when the command has ended or the stdin is closed. When the connection breaks, it is not
        known how much was written, and QUEUE_UNAVAILABLE is raised.
        """
        await self._send_stdin(data, end=False)

    async def close_stdin(self) -> None:
        """Ends the stdin after everything that was written. Does nothing for a closed stdin or an ended command."""
        await self._send_stdin(b"", end=True)

    async def _stream_stdin(self, pieces: AsyncIterable[bytes]) -> None:
        try:
            await self._send_stdin(pieces, end=True)
        except ShellfleetError as error:
            # A command that ends first reads no more of its stdin.
            if error.code != "COMMAND_INVALID":
                self._stdin_failure = error
        except asyncio.CancelledError:
            await cancel_within(self, "Its stdin is not complete: the client was closed")
            raise
        except Exception as error:
            self._stdin_failure = error
        if self._stdin_failure is not None:
            await cancel_within(self, "Its stdin is not complete")

    async def stdin_sent(self) -> None:
        """Waits until a stdin of pieces was sent, or the command reads no more of it. Raises what its source raised."""
        if self._sending is not None:
            await asyncio.wait({self._sending})
        if self._stdin_failure is not None:
            raise self._stdin_failure

    async def _send_stdin(self, data: str | bytes | AsyncIterable[bytes], *, end: bool) -> None:
        with only_sendable():
            content = data.encode() if isinstance(data, str) else data
        # As pieces, it is sent once: a second time could write twice.
        body = once(content) if isinstance(content, bytes) and content else content
        async with self._writing:
            path = path_of("commands", self.id, "stdin")
            headers = {"content-type": "application/octet-stream"}
            query = {"end": "true" if end else None}
            async with self._api.send("POST", path, query=query, body=body, headers=headers, patient=True):
                pass


async def once(content: bytes) -> AsyncGenerator[bytes]:
    """Yields bytes as one piece."""
    yield content


async def cancel_within(command: Command, reason: str) -> None:
    """Cancels a command. A fleet that cannot be reached does not keep the caller."""
    try:
        await asyncio.wait_for(command.cancel(reason), CANCEL_WITHIN_S)
    except (ShellfleetError, asyncio.TimeoutError):
        pass
