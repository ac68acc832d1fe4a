"""The client without await, through the API of a real fleet."""

import os
import signal
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from live import HOST, new_id, sockets, stage
from shellfleet import OPEN, OutputChunk, ShellfleetError
from shellfleet.sync import Fleet


class WithoutAwait(unittest.TestCase):
    def setUp(self) -> None:
        before = (set(threading.enumerate()), sockets())
        self.addCleanup(lambda: self.assertEqual((set(threading.enumerate()), sockets()), before))
        self.fleet = Fleet.connect(stage().url, stage().key)
        self.addCleanup(self.fleet.close)

    def test_a_session_runs_commands_with_output_stdin_and_events(self) -> None:
        with self.fleet.session(new_id(), HOST) as session:
            chunks: list[OutputChunk] = []
            threads: set[str] = set()

            def take(chunk: OutputChunk) -> None:
                chunks.append(chunk)
                threads.add(threading.current_thread().name)

            result = session.run("cat; exit 3", stdin=iter([b"a", b"b"]), on_output=take)
            self.assertEqual((result.outcome, result.exit_code, result.stdout), ("failure", 3, "ab"))
            self.assertEqual((b"".join(one.data for one in chunks), threads), (b"ab", {"MainThread"}))
            command = session.submit("read x; echo got $x", stdin=OPEN)
            command.write("it\n")
            command.close_stdin()
            self.assertEqual("".join(one.text for one in command.output()), "got it\n")
            self.assertEqual((command.result().outcome, command.info().state), ("success", "ended"))
            self.assertEqual(b"".join(self.fleet.command(command.id).log()), b"got it\n")
            self.assertFalse(command.cancel())
            session.restart()
            self.assertEqual(session.info().epoch, 2)
            self.assertIn(session.id, [one.id for one in self.fleet.sessions()])
            for event in session.events():
                if event.type == "command.completed":
                    break
        self.assertIn("session.closed", [event.type for event in session.events()])
        with self.assertRaises(ShellfleetError):
            session.run("true")

    def test_threads_share_a_fleet(self) -> None:
        with self.fleet.session(new_id(), HOST) as session, ThreadPoolExecutor(8) as threads:

            def run(number: int) -> str:
                return session.run(f"echo {number}").stdout

            results = threads.map(run, range(16))
            self.assertEqual(list(results), [f"{number}\n" for number in range(16)])

    def test_ctrl_c_cancels_the_command(self) -> None:
        with self.fleet.session(new_id(), HOST) as session:
            begun: list[float] = []

            def interrupt() -> None:
                while session.info().running_command_id is None:
                    time.sleep(0.02)
                begun.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

            for on_output in (None, print):
                thread = threading.Thread(target=interrupt)
                thread.start()
                with self.assertRaises(KeyboardInterrupt):
                    if on_output is None:
                        session.run("sleep 60")
                    else:
                        session.run("sleep 60", on_output=on_output)
                thread.join()
            self.assertEqual(session.run("echo next").stdout, "next\n")
            self.assertLess(time.monotonic() - begun[0], 30)

    def test_a_run_is_one_shot(self) -> None:
        self.assertEqual(self.fleet.run("echo $A", spec=HOST, env={"A": "b"}).stdout, "b\n")
        seen: list[tuple[str, str]] = []

        def take(chunk: OutputChunk) -> None:
            # The function may use the Fleet.
            name = threading.current_thread().name
            seen.append((chunk.text, self.fleet.run("echo $A", spec=HOST, env={"A": name}).stdout))

        self.fleet.run("echo a", spec=HOST, on_output=take)
        self.assertEqual(seen, [("a\n", "MainThread\n")])
        self.assertEqual(self.fleet.me.name, "agent")
        self.assertIsNone(self.fleet.attach(new_id()))
