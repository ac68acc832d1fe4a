"""Connections to the API, their pool, and repeated requests."""

import asyncio
import contextlib
import io
import tempfile
import unittest
from collections.abc import AsyncGenerator, Awaitable, Callable
from unittest.mock import patch

from scripted import Answer, Received, answer, problem, raw, scripted
from shellfleet import Command, Session, ShellfleetError
from shellfleet._http import api as api_module
from shellfleet._http.api import Api
from shellfleet._http.follow import follow
from shellfleet.files import Files


class Connections(unittest.IsolatedAsyncioTestCase):
    async def test_are_kept_alive_between_requests(self) -> None:
        async with scripted(answer(b'{"a": 1}'), answer(b"", "204 No Content"), answer()) as (server, api):
            query = {"a b": "c&d", "flag": True, "no": None, "l": ["1", "2"]}
            self.assertEqual(await api.call("GET", "/v1/x", query=query), {"a": 1})
            self.assertIsNone(await api.call("DELETE", "/v1/x"))
            await api.call("POST", "/v1/x", body={"é": 1})
            self.assertEqual([one.connection for one in server.received], [1, 1, 1])
            self.assertEqual(server.received[0].line, "GET /v1/x?a%20b=c%26d&flag&l=1&l=2 HTTP/1.1")
            self.assertEqual(server.received[0].headers["authorization"], "Bearer k")

    async def test_that_the_server_closed_in_the_meantime_are_replaced(self) -> None:
        async with scripted(answer(), answer(close=True), answer()) as (server, api):
            for _ in range(3):
                await api.call("GET", "/v1/x")
            self.assertEqual([one.connection for one in server.received], [1, 1, 2])

    async def test_are_several_for_requests_at_once(self) -> None:
        async def slow(request: Received) -> None:
            await asyncio.sleep(0.05)
            await answer()(request)

        async with scripted(slow, slow, slow) as (server, api):
            await asyncio.gather(*(api.call("GET", "/v1/x") for _ in range(3)))
            self.assertEqual(server.connections, 3)

    async def test_read_chunks_that_arrive_byte_by_byte(self) -> None:
        data = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4;x=y\r\n[1,2\r\n3\r\n,3]\r\n0\r\nt: v\r\n\r\n"

        async def drip(request: Received) -> None:
            for byte in data:
                request.writer.write(bytes([byte]))
                await request.writer.drain()

        async with scripted(drip, answer()) as (server, api):
            self.assertEqual(await api.call("GET", "/v1/x"), [1, 2, 3])
            await api.call("GET", "/v1/x")
            self.assertEqual(server.connections, 1)

    async def test_tell_at_the_end_of_a_log_that_bytes_of_it_are_missing(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
        whole, short = (raw(head + b"Omitted-Bytes: %d\r\n\r\n" % count, close=False) for count in (0, 7))
        async with scripted(whole, short) as (_, api):
            command = Command(api, "a.1", "a")
            self.assertEqual([piece async for piece in command.log()], [b"abc"])
            got: list[bytes] = []
            with self.assertRaisesRegex(ShellfleetError, "LOG_EXPIRED: 7 bytes") as caught:
                async for piece in command.log():
                    got.append(piece)
            self.assertEqual((got, caught.exception.context["omittedBytes"]), ([b"abc"], 7))

    async def test_that_break_off_a_directory_tell_what_may_be_wrong_with_it(self) -> None:
        info = b'{"name": "d", "path": "/d", "type": "directory", "size": 0, "mode": 493, "modifiedAt": "t"}'
        half = raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n")
        async with scripted(answer(info), half) as (_, api):
            with tempfile.TemporaryDirectory() as directory:
                with self.assertRaisesRegex(ShellfleetError, "QUEUE_UNAVAILABLE: The copy of /d broke off.* not UTF-8"):
                    await Files(api, "a").download("/d", directory)

    async def test_are_tried_once_more_by_work_that_the_end_of_the_client_cancels(self) -> None:
        async def work() -> None:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                with contextlib.suppress(ShellfleetError):
                    await api.call("POST", "/v1/cancel")

        async with scripted() as (server, api):
            api.spawn(work())
            await asyncio.sleep(0)
            await asyncio.wait_for(api.close(), 4)
            self.assertEqual(len(server.received), 1)

    async def test_are_given_up_when_the_task_that_waits_is_cancelled(self) -> None:
        gone = asyncio.Event()

        async def never(request: Received) -> None:
            self.assertEqual(await request.reader.read(), b"")
            gone.set()

        async with scripted(never) as (_, api):
            waiting = asyncio.create_task(api.call("GET", "/v1/x"))
            await asyncio.sleep(0.05)
            waiting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await waiting
            await asyncio.wait_for(gone.wait(), 5)

    async def test_are_closed_with_the_client_and_their_waits_end(self) -> None:
        async def never(request: Received) -> None:
            await request.reader.read()

        async with scripted(never) as (_, api):
            waiting = asyncio.create_task(api.call("GET", "/v1/x"))
            await asyncio.sleep(0.05)
            await api.close()
            for call in (waiting, api.call("GET", "/v1/x")):
                with self.assertRaises(ShellfleetError) as caught:
                    await call
                self.assertEqual(caught.exception.code, "QUEUE_UNAVAILABLE")


async def receive_pieces(request: Received) -> list[bytes]:
    """Reads a chunked body to its end."""
    pieces: list[bytes] = []
    while (size := int(await request.reader.readline(), 16)) > 0:
        pieces.append((await request.reader.readexactly(size + 2))[:-2])
    await request.reader.readline()
    return pieces


class Bodies(unittest.IsolatedAsyncioTestCase):
    async def pieces(self, count: int) -> AsyncGenerator[bytes]:
        for _ in range(count):
            yield b"x" * 60_000

    async def send(self, api: Api, body: bytes | AsyncGenerator[bytes]) -> int:
        async with api.send("PUT", "/v1/x", body=body) as response:
            return response.status

    async def test_of_pieces_arrive_whole(self) -> None:
        sizes: list[int] = []

        async def receive(request: Received) -> None:
            sizes.extend(len(piece) for piece in await receive_pieces(request))
            await answer()(request)

        async with scripted(receive) as (_, api):
            self.assertEqual(await self.send(api, self.pieces(3)), 200)
        self.assertEqual(sizes, [60_000] * 3)

    async def test_end_with_an_answer_that_comes_before_them(self) -> None:
        async def refuse(request: Received) -> None:
            await problem("413 Too Large", "FILE_TOO_LARGE")(request)
            await request.reader.read()

        async with scripted(refuse, answer()) as (server, api):
            with self.assertRaises(ShellfleetError) as caught:
                await self.send(api, self.pieces(10_000))
            self.assertEqual(caught.exception.code, "FILE_TOO_LARGE")
            await api.call("GET", "/v1/x")
            self.assertEqual([one.connection for one in server.received], [1, 2])

    async def test_end_with_the_error_of_their_source(self) -> None:
        async def source() -> AsyncGenerator[bytes]:
            yield b"a"
            raise OSError("the disk is gone")

        async def receive(request: Received) -> None:
            await request.reader.read()

        async with scripted(receive) as (_, api):
            with self.assertRaisesRegex(OSError, "the disk is gone"):
                await self.send(api, source())

    async def test_of_pieces_are_not_sent_a_second_time(self) -> None:
        async with scripted(raw(b""), answer()) as (server, api):
            with self.assertRaises(ShellfleetError):
                await self.send(api, self.pieces(1))
            self.assertEqual(len(server.received), 1)

    async def test_of_pieces_are_not_sent_again_after_a_refusal(self) -> None:
        limit = problem("429 Too Many", "QUOTA_EXCEEDED", retry_after="0")
        for refusal in (problem("503 Down", "QUEUE_UNAVAILABLE"), limit):

            async def refuse(request: Received, refusal: Answer = refusal) -> None:
                await receive_pieces(request)
                await refusal(request)

            async with scripted(refuse, answer()) as (server, api):
                with self.assertRaises(ShellfleetError):
                    await self.send(api, self.pieces(1))
                self.assertEqual(len(server.received), 1)

    async def test_of_a_file_are_sent_again_whole(self) -> None:
        bodies: list[bytes] = []

        async def receive(request: Received) -> None:
            bodies.append(b"".join(await receive_pieces(request)))
            await answer(b"", "204 No Content")(request)

        async def refuse(request: Received) -> None:
            await receive_pieces(request)
            await problem("503 Down", "QUEUE_UNAVAILABLE")(request)

        async with scripted(raw(b""), refuse, receive) as (_, api):
            file = io.BytesIO(b"-" + b"x" * 600_000)
            file.seek(1)
            await Files(api, "s").write("/f", file)
        self.assertEqual(bodies, [b"x" * 600_000])


class Repeating(unittest.IsolatedAsyncioTestCase):
    async def test_goes_on_over_broken_connections_with_the_same_request(self) -> None:
        broken = [raw(b""), raw(b"HTTP/1.1 20"), raw(b"SSH-2.0-x\r\n\r\n")]
        async with scripted(*broken, answer(b"[1]")) as (server, api):
            headers = {"idempotency-key": "one"}
            self.assertEqual(await api.call("POST", "/v1/x", body={}, headers=headers), [1])
            self.assertEqual([one.headers["idempotency-key"] for one in server.received], ["one"] * 4)

    async def test_goes_on_when_a_reply_breaks_off_in_its_middle(self) -> None:
        broken = [
            raw(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n[1,"),
            raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n[1,"),
            raw(b"HTTP/1.1 404 No\r\ncontent-length: 9\r\n\r\n{"),
        ]
        async with scripted(*broken, answer(b"[1]")) as (server, api):
            self.assertEqual(await api.call("GET", "/v1/x"), [1])
            self.assertEqual(len(server.received), 4)
        async with scripted(broken[0], answer(b"[1]")) as (server, api):
            self.assertEqual(await Files(api, "s").read("/f"), b"[1]")
        async with scripted(broken[0], answer(b"[1]")) as (server, api):
            with self.assertRaises(ShellfleetError):
                await api.call("POST", "/v1/x", once=True)
            self.assertEqual(len(server.received), 1)

    async def test_waits_as_long_as_the_server_asks(self) -> None:
        waits: list[float] = []

        async def record(_api: Api, seconds: float) -> None:
            waits.append(seconds)

        busy = [problem("429 Too Many", "QUOTA_EXCEEDED", retry_after="3"), problem("503 Down", "QUEUE_UNAVAILABLE")]
        async with scripted(*busy, answer(b"[1]")) as (_, api):
            with patch.object(Api, "pause", record):
                self.assertEqual(await api.call("GET", "/v1/x"), [1])
        self.assertEqual(waits[0], 3)
        self.assertLess(waits[1], 0.2)

    async def test_ends_at_once_when_the_client_is_closed(self) -> None:
        async with scripted(problem("503 Down", "QUEUE_UNAVAILABLE", retry_after="4")) as (server, api):
            call = asyncio.create_task(api.call("GET", "/v1/x"))
            while not server.received:
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.1)
            await api.close()
            with self.assertRaises(ShellfleetError) as caught:
                await asyncio.wait_for(call, 1)
            self.assertEqual(caught.exception.code, "QUEUE_UNAVAILABLE")

    async def test_ends_at_once_for_other_errors(self) -> None:
        async with scripted(problem("429 Quota", "QUOTA_EXCEEDED"), problem("404 No", "SESSION_NOT_FOUND")) as (_, api):
            for code in ("QUOTA_EXCEEDED", "SESSION_NOT_FOUND"):
                with self.assertRaises(ShellfleetError) as caught:
                    await api.call("GET", "/v1/x")
                error = caught.exception
                self.assertEqual((error.code, error.message, error.retryable), (code, "d", True))
                self.assertEqual(error.context, {"a": 1})

    async def test_ends_when_its_time_is_over(self) -> None:
        async with scripted(*[raw(b"")] * 50, retry_s=0.2) as (server, api):
            with self.assertRaises(ShellfleetError) as caught:
                await api.call("GET", "/v1/x")
            self.assertEqual(caught.exception.code, "QUEUE_UNAVAILABLE")
            self.assertIn(f"http://127.0.0.1:{server.port}", caught.exception.message)
            self.assertGreater(len(server.received), 1)

    async def test_takes_a_silent_connection_for_a_broken_one(self) -> None:
        async def never(request: Received) -> None:
            await request.reader.read()

        async with scripted(never, answer(b"[1]")) as (_, api):
            with patch.object(api_module, "SILENCE_S", 0.1):
                self.assertEqual(await api.call("GET", "/v1/x"), [1])

    async def test_lets_a_patient_request_wait_for_a_silent_server(self) -> None:
        async def slow(request: Received) -> None:
            await asyncio.sleep(0.3)
            await answer(b"[1]")(request)

        async with scripted(slow) as (_, api):
            with patch.object(api_module, "SILENCE_S", 0.1):
                self.assertEqual(await api.call("POST", "/v1/x", patient=True), [1])

    async def test_sends_nothing_again_that_may_have_happened_once(self) -> None:
        async with scripted(problem("503 Down", "QUEUE_UNAVAILABLE"), answer()) as (server, api):
            with self.assertRaises(ShellfleetError):
                await api.call("POST", "/v1/x", once=True)
            self.assertEqual(len(server.received), 1)

    async def test_reports_answers_of_something_else(self) -> None:
        answers = [answer(b"<html>", status) for status in ("404 Not Found", "301 Moved", "200 OK")]
        async with scripted(*answers) as (_, api):
            for _ in answers:
                with self.assertRaises(ShellfleetError) as caught:
                    await api.call("GET", "/v1/x")
                self.assertIn("<html>", caught.exception.message)


class Texts(unittest.IsolatedAsyncioTestCase):
    async def test_that_no_request_can_carry_are_refused_with_a_code(self) -> None:
        half = "\udcff"
        async with scripted() as (server, api):
            session = Session(api, "s", None)
            calls: list[tuple[str, Callable[[], Awaitable[object]]]] = [
                ("COMMAND_INVALID", lambda: session.submit(half)),
                ("COMMAND_INVALID", lambda: session.submit("cat", stdin=half)),
                ("COMMAND_INVALID", lambda: session.submit("cat", idempotency_key="a\nb")),
                ("COMMAND_INVALID", lambda: session.submit("cat", idempotency_key="\u20ac")),
                ("COMMAND_INVALID", lambda: session.files.write("/f", half)),
                ("COMMAND_INVALID", lambda: session.files.rename("/f", half)),
                ("COMMAND_INVALID", lambda: Session(api, half, None).info()),
                ("PATH_INVALID", lambda: session.files.read(f"/{half}")),
            ]
            for code, call in calls:
                with self.assertRaises(ShellfleetError) as caught:
                    await call()
                self.assertEqual(caught.exception.code, code)
            self.assertEqual(server.received, [])


class Following(unittest.IsolatedAsyncioTestCase):
    EVENTS = [f"id: {number}\nevent: e\ndata: {number}\n\n".encode() for number in range(1, 6)]
    HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

    def chunks_after(self, last: str | None) -> bytes:
        events = self.EVENTS[int(last or 0) :]
        return self.HEAD + b"".join(b"%x\r\n%b\r\n" % (len(event), event) for event in events)

    async def test_loses_and_doubles_no_event_wherever_the_connection_breaks(self) -> None:
        length = len(self.chunks_after(None))
        no_wait = patch("shellfleet._http.follow._FIRST_DELAY_S", 0), patch("shellfleet._http.api._FIRST_DELAY_S", 0)
        for cut in range(0, length, 7):

            async def first(request: Received, cut: int = cut) -> None:
                await raw(self.chunks_after(None)[:cut])(request)

            async def second(request: Received) -> None:
                await raw(self.chunks_after(request.headers.get("last-event-id")) + b"0\r\n\r\n")(request)

            ended = answer(b"", "204 No Content")
            with no_wait[0], no_wait[1]:
                async with scripted(first, second, ended, ended) as (_, api):
                    seen = [event.data async for event in follow(api, "/v1/x")]
            self.assertEqual(seen, [1, 2, 3, 4, 5], cut)

    async def test_gives_its_connection_up_when_the_reader_stops(self) -> None:
        gone = asyncio.Event()

        async def stream(request: Received) -> None:
            request.writer.write(self.chunks_after(None))
            with contextlib.suppress(ConnectionError):
                await request.reader.read()
            gone.set()

        async with scripted(stream) as (_, api):
            events = follow(api, "/v1/x", after="0")
            self.assertEqual((await anext(events)).id, "1")
            await events.aclose()
            await asyncio.wait_for(gone.wait(), 5)

    async def test_ends_with_the_error_of_an_api_that_stays_away(self) -> None:
        async with scripted(raw(self.chunks_after(None)), retry_s=0.2) as (server, api):
            seen: list[int] = []
            with self.assertRaises(ShellfleetError) as caught:
                async for event in follow(api, "/v1/x"):
                    seen.append(event.data)
            self.assertEqual((seen, caught.exception.code), ([1, 2, 3, 4, 5], "QUEUE_UNAVAILABLE"))
            self.assertGreater(len(server.received), 2)
