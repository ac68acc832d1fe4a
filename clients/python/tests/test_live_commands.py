"""Commands, through the API of a real fleet."""

import asyncio
import subprocess
from collections.abc import AsyncGenerator, Awaitable

from live import HOST, LiveTest, connect, new_id, stage, until
from shellfleet import OPEN, Command, Fleet, OutputChunk, Result, RunOptions, Session, SessionSpec, ShellfleetError


class Outcomes(LiveTest):
    async def test_are_results_also_when_a_command_fails(self) -> None:
        session = await self.session()
        success = await session.run("cd /tmp; x='é'; echo $x; echo err >&2")
        self.assertEqual((success.outcome, success.exit_code, success.reason), ("success", 0, "exited"))
        self.assertEqual((success.stdout, success.stderr, success.deduplicated), ("é\n", "err\n", False))
        self.assertEqual((success.shell.state, success.shell.epoch), ("kept", 1))
        failure = await session.run('test "$x" = é && pwd && (exit 3)')
        self.assertEqual((failure.outcome, failure.exit_code, failure.stdout), ("failure", 3, "/tmp\n"))

    async def test_are_timeouts_cancellations_denials_and_blocks(self) -> None:
        session = await self.session(
            {
                "exec_policy": [{"pattern": ["rm"], "decision": "forbid", "justification": "keep"}],
                "redaction": [{"type": "mark", "pattern": "mark-[0-9]+", "strategy": "block"}],
            }
        )
        timeout = await session.run("echo part; sleep 60", timeout_ms=200)
        self.assertEqual((timeout.outcome, timeout.reason, timeout.exit_code), ("timeout", "wall", None))
        self.assertEqual((timeout.stdout, timeout.limit_ms), ("part\n", 200))
        command = await session.submit("sleep 60")
        self.assertTrue(await command.cancel("no need"))
        cancelled = await command.result()
        self.assertEqual((cancelled.outcome, cancelled.cancel_reason), ("cancellation", "no need"))
        self.assertFalse(await command.cancel())
        denial = await session.run("rm -rf /nothing")
        self.assertEqual((denial.outcome, denial.reason), ("denial", "rules"))
        self.assertIn("keep", denial.stderr)
        command = await session.submit("echo mark-1")
        self.assertEqual([chunk.omitted_because async for chunk in command.output()], ["withheld"])
        blocked = await command.result()
        assert blocked.blocked is not None
        self.assertEqual((blocked.outcome, blocked.stdout, blocked.blocked.type), ("blocked", "", "mark"))

    async def test_are_errors_of_the_fleet_also_when_a_sandbox_is_gone(self) -> None:
        missing = await self.fleet.run("true", spec={"image": "no-such-image:1"})
        assert missing.error is not None
        self.assertEqual((missing.outcome, missing.error.code), ("error", "IMAGE_UNAVAILABLE"))
        session = await self.fleet.session(new_id(), policy="docker")
        command = await session.submit("echo begun; sleep 60")
        await anext(output := command.output())
        await output.aclose()
        remove_container(session.id)
        gone = await command.result()
        assert gone.error is not None
        self.assertEqual((gone.outcome, gone.reason, gone.stdout), ("error", "container-removed", "begun\n"))
        self.assertEqual((gone.error.code, gone.shell.state), ("CONTAINER_LOST", "lost"))
        await session.close()


def remove_container(session_id: str) -> None:
    labels = [f"label=shellfleet.namespace={stage().namespace}", f"label=shellfleet.session={session_id}"]
    filters = [word for label in labels for word in ("--filter", label)]
    found = subprocess.run(["docker", "ps", "-q", *filters], check=True, capture_output=True, text=True)
    subprocess.run(["docker", "rm", "-f", *found.stdout.split()], check=True, capture_output=True)


class Errors(LiveTest):
    async def refused(self, call: Awaitable[object], code: str) -> ShellfleetError:
        with self.assertRaises(ShellfleetError) as caught:
            await call
        self.assertEqual(caught.exception.code, code)
        return caught.exception

    async def test_say_what_is_wrong_with_a_request(self) -> None:
        session = await self.session()
        error = await self.refused(session.run("true", timeout_ms=-1), "COMMAND_INVALID")
        self.assertEqual(error.context["issues"][0]["path"], "timeoutMs")
        self.assertFalse(error.retryable)
        await self.refused(self.fleet.session("a b"), "COMMAND_INVALID")
        error = await self.refused(self.fleet.session(new_id(), cwd="relative"), "SESSION_SPEC_INVALID")
        self.assertIn("cwd", error.message)
        await self.refused(self.fleet.session(session.id, policy="docker"), "SESSION_CONFLICT")
        await self.refused(self.fleet.command("py.01ARZ3NDEKTSV4RRFFQ69G5FAV"), "RESULT_EXPIRED")

    async def test_say_that_a_key_is_wrong_and_that_a_session_is_closed(self) -> None:
        with self.assertRaises(ShellfleetError) as caught:
            await Fleet.connect(stage().url, "sfk_wrong")
        self.assertEqual(caught.exception.code, "UNAUTHORIZED")
        session = await self.session()
        await session.close()
        await self.refused(session.run("true"), "SESSION_CLOSED")


class Cancelling(LiveTest):
    async def test_a_task_that_runs_a_command_cancels_the_command(self) -> None:
        session = await self.session()
        # Submitted later, it runs when the command before it has ended.
        task = asyncio.create_task(session.run("echo begun > begun; sleep 60"))
        await until(lambda: self.is_running(session))
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual((await session.run("cat begun")).stdout, "begun\n")

    async def test_a_task_with_a_reader_of_output_cancels_the_command(self) -> None:
        session = await self.session()
        begun = asyncio.Event()
        task = asyncio.create_task(session.run("echo begun; sleep 60", on_output=lambda _: begun.set()))
        await begun.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual((await session.run("echo next")).stdout, "next\n")

    async def test_a_task_that_submits_a_command_leaves_none_behind_that_nobody_knows(self) -> None:
        session = await self.session()
        for delay_s in (0.001, 0.002, 0.004, 0.008):
            for work in (session.run("sleep 60", on_output=print), session.submit("sleep 60", stdin=iter([b"a"]))):
                task = asyncio.create_task(work)
                await asyncio.sleep(delay_s)
                task.cancel()
                accepted = (await asyncio.gather(task, return_exceptions=True))[0]
                # A submit whose reply came first.
                if isinstance(accepted, Command):
                    await accepted.cancel()
        self.assertEqual((await session.run("echo next")).stdout, "next\n")

    async def test_a_one_shot_run_ends_its_session(self) -> None:
        task = asyncio.create_task(self.fleet.run("sleep 60", spec=HOST_LABELLED))
        await until(lambda: self.count("busy", 1))
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual([info async for info in self.fleet.sessions(labels=LABELS)], [])

    async def test_a_wait_for_a_result_leaves_the_command_alone(self) -> None:
        session = await self.session()
        command = await session.submit("read x; echo got $x", stdin=OPEN)
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(command.result(), 0.1)
        await command.write("a line\n")
        await command.close_stdin()
        self.assertEqual((await command.result()).stdout, "got a line\n")

    async def is_running(self, session: Session) -> bool:
        return (await session.info()).running_command_id is not None

    async def count(self, state: str, number: int) -> bool:
        states = [info.state async for info in self.fleet.sessions(labels=LABELS)]
        return states == [state] * number


LABELS = {"test": "one-shot"}
HOST_LABELLED: SessionSpec = {"policy": "host", "labels": LABELS}


class Runs(LiveTest):
    async def test_deliver_output_live_and_stdin_of_every_kind(self) -> None:
        session = await self.session()
        chunks: list[OutputChunk] = []
        result = await session.run("cat; echo end >&2", stdin="täxt", on_output=chunks.append)
        self.assertEqual(b"".join(one.data for one in chunks if one.stream == "stdout").decode(), "täxt")
        self.assertEqual("".join(one.text for one in chunks if one.stream == "stderr"), "end\n")
        self.assertEqual([one.seq for one in chunks], list(range(len(chunks))))
        self.assertEqual(result.stdout, "täxt")

        async def pieces() -> AsyncGenerator[bytes]:
            for _ in range(3):
                yield b"x" * 300_000

        for stdin, size in [(b"\xff" * 10, 10), (b"y" * 700_000, 700_000), (pieces(), 900_000), ([b"a", b"b"], 2)]:
            counted = await session.run("wc -c", stdin=stdin)
            self.assertEqual(int(counted.stdout), size)

    async def test_raise_what_the_source_of_stdin_raised_and_stop_the_command(self) -> None:
        session = await self.session()

        async def broken() -> AsyncGenerator[bytes]:
            yield b"a"
            raise ValueError("no more")

        with self.assertRaisesRegex(ValueError, "no more"):
            await session.run("cat", stdin=broken())
        self.assertEqual((await session.run("echo next")).stdout, "next\n")

    async def test_of_one_shots_share_a_key_and_keep_bytes(self) -> None:
        key = new_id()
        script = "printf '\\377'; date +%N"
        first, second = [
            await self.fleet.run(script, spec={"policy": "host"}, idempotency_key=key, encoding="base64")
            for _ in range(2)
        ]
        self.assertEqual((first.stdout, first.deduplicated, second.deduplicated), (second.stdout, False, True))
        with self.assertRaises(ShellfleetError) as caught:
            await self.fleet.run("true", spec={"policy": "host"}, idempotency_key=key)
        self.assertEqual(caught.exception.code, "IDEMPOTENCY_CONFLICT")

    async def test_of_one_shots_with_output_or_stdin_run_once_for_a_key_too(self) -> None:
        def ignore(_: object) -> None:
            pass

        given: list[RunOptions] = [{"on_output": ignore}, {"stdin": [b"a"]}, {"stdin": "x" * 600_000}]
        for options in given:
            options["idempotency_key"] = new_id()
            runs = [await self.fleet.run("wc -c; date +%N", spec=HOST, **options) for _ in range(2)]
            self.assertEqual([one.deduplicated for one in runs], [False, True])
            self.assertEqual(runs[0].stdout, runs[1].stdout)
            info = await self.fleet.attach(runs[0].session_id)
            self.assertEqual(info and (await info.info()).state, "closed")

    async def test_of_one_shots_deliver_output_and_close_their_session(self) -> None:
        chunks: list[str] = []
        spec: SessionSpec = {"policy": "host", "labels": {"test": "output"}}
        take = chunks.append
        result = await self.fleet.run("cat", spec=spec, stdin=[b"a", b"b"], on_output=lambda one: take(one.text))
        self.assertEqual((result.stdout, "".join(chunks)), ("ab", "ab"))
        self.assertEqual([one async for one in self.fleet.sessions(labels={"test": "output"})], [])

    async def test_keep_the_order_of_their_calls(self) -> None:
        session = await self.session()
        commands = [await session.submit(f"echo {number} >> all") for number in range(10)]
        await asyncio.gather(*(command.result() for command in commands))
        self.assertEqual((await session.run("cat all")).stdout.split(), [str(number) for number in range(10)])


class Sessions(LiveTest):
    async def test_are_found_listed_restarted_and_closed(self) -> None:
        id = new_id()
        self.assertIsNone(await self.fleet.attach(id))
        async with await self.fleet.session(id, HOST_LABELLED) as session:
            await session.run("x=1")
            await session.restart()
            self.assertEqual((await session.run("echo ${x-none}")).stdout, "none\n")
            info = await session.info()
            self.assertEqual((info.id, info.state, info.epoch, info.labels), (id, "ready", 2, LABELS))
            self.assertEqual([one.id async for one in self.fleet.sessions(labels=LABELS, state="ready")], [id])
            again = await self.fleet.attach(id)
            assert again is not None
            self.assertEqual((await again.run("echo $0 > /dev/null")).outcome, "success")
        self.assertIn(id, [one.id async for one in self.fleet.sessions(all=True)])
        self.assertNotIn(id, [one.id async for one in self.fleet.sessions()])

    async def test_have_events_to_their_end(self) -> None:
        session = await self.session()
        await session.run("printf é")
        await session.close()
        events = [event async for event in session.events()]
        self.assertEqual((events[0].type, events[-1].type), ("command.accepted", "session.closed"))
        data = {event.type: event.data for event in events}
        output, completed, opened = (data[name] for name in ("command.output", "command.completed", "session.opened"))
        assert isinstance(output, OutputChunk) and isinstance(completed, Result) and isinstance(opened, dict)
        self.assertEqual((output.text, completed.stdout, opened["epoch"]), ("é", "é", 1))
        middle = events[len(events) // 2]
        later = [event.id async for event in session.events(after=middle.id)]
        self.assertEqual(later, [event.id for event in events[len(events) // 2 + 1 :]])

    async def test_of_another_client_have_the_same_commands(self) -> None:
        session = await self.session()
        command = await session.submit("echo one; echo two >&2")
        async with connect() as other:
            found = await other.command(command.id)
            self.assertEqual((found.session_id, (await found.result()).outcome), (session.id, "success"))
            self.assertEqual((await found.info()).state, "ended")
            self.assertEqual(b"".join([piece async for piece in found.log(stream="stdout")]), b"one\n")
            self.assertEqual(b"".join([piece async for piece in found.log(stream="stderr", start=1)]), b"wo\n")

    async def test_run_200_at_once_of_which_some_get_a_slot_and_the_others_wait(self) -> None:
        ended: dict[int, str] = {}
        sessions = await asyncio.gather(*(self.fleet.session(new_id(), policy="host") for _ in range(200)))

        async def run(number: int) -> str:
            result = await sessions[number].run(f"echo {number}")
            ended[number] = result.stdout
            return result.outcome

        runs = [asyncio.create_task(run(number)) for number in range(200)]
        await until(lambda: len(ended) >= 20)
        await asyncio.gather(*(session.close() for session in sessions))
        outcomes = await asyncio.gather(*runs)
        self.assertEqual(set(outcomes), {"success", "cancellation"})
        for number, outcome in enumerate(outcomes):
            if outcome == "success":
                self.assertEqual(ended[number], f"{number}\n")
