"""An evaluation with files in and out: each task gets a directory, is solved and graded, and gives a directory back.

The tasks ask for a patch of a small program. `solve` is the command that a model would give. Run it with
`python evaluation.py [DIRECTORY]` while a fleet is up (`npx shellfleet up`); the results are in the directory.
"""

import asyncio
import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from shellfleet import Fleet

AT_ONCE = 4


@dataclass(frozen=True)
class Task:
    """A program, the command that changes it, and what it should print then."""

    id: str
    program: str
    solve: str
    expected: str


TASKS = [
    Task("upper", "print('hello')", "sed -i 's/hello/HELLO/' main.py", "HELLO"),
    Task("twice", "print('a')", "cp main.py more.py; cat more.py >> main.py", "a\na"),
    Task("wrong", "print(1)", "true", "2"),
    Task("endless", "while True: pass", "python3 main.py", ""),
]


async def evaluate(fleet: Fleet, task: Task, out: Path) -> dict[str, object]:
    """Runs one task. Returns a line of the report."""
    async with await fleet.session(f"eval-{task.id}") as session:
        with tempfile.TemporaryDirectory() as given:
            (Path(given) / "main.py").write_text(task.program + "\n")
            (Path(given) / "README").write_text("Change main.py.\n")
            await session.files.upload(given, "/workspace/task")
        solved = await session.run(task.solve, cwd="/workspace/task", timeout_ms=2_000)
        graded = await session.run("timeout 2 python3 main.py", cwd="/workspace/task")
        await session.files.write("/workspace/task/report/graded.txt", graded.output)
        await session.files.download("/workspace/task", out / task.id)
    passed = solved.outcome == "success" and graded.stdout.strip() == task.expected
    return {"id": task.id, "passed": passed, "solve": solved.outcome, "ms": round(solved.timings.run_ms)}


async def main(directory: str | None) -> int:
    out = Path(directory or tempfile.mkdtemp(prefix="evaluation-"))
    slots = asyncio.Semaphore(AT_ONCE)
    async with Fleet.connect() as fleet:

        async def one(task: Task) -> dict[str, object]:
            async with slots:
                return await evaluate(fleet, task, out)

        lines = await asyncio.gather(*(one(task) for task in TASKS))
    for line in lines:
        print(json.dumps(line))
    print(f"{sum(line['passed'] is True for line in lines)} of {len(TASKS)} passed; files are in {out}")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*(sys.argv[1:2] or [None]))))
