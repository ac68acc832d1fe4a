"""Eight agents at once, each with a session of its own.

A model decides on a command, the session runs it, and the model reads its result. Here a script stands in for the
model: put calls to a real one into `decide`. The session is one shell: directory, variables and files last from one
turn to the next. Run it with `python agent_loop.py` while a fleet is up (`npx shellfleet up`).
"""

import asyncio
import sys

from shellfleet import Fleet, Result, Session

AGENTS = 8
MOST_TURNS = 10
BROKEN = "print(sum(int(word) for word in input().split(','))"
FIXED = BROKEN + ")"


def decide(history: list[Result]) -> str | None:
    """Returns the next command, or None when the goal is reached."""
    write = "cat > add.py <<'END'\n{}\nEND"
    if not history:
        return "mkdir -p work && cd work && " + write.format(BROKEN)
    last = history[-1]
    if len(history) == 1:
        return "echo 1,2,3 | python3 add.py"
    if "SyntaxError" in last.stderr:
        return write.format(FIXED)
    if last.stdout == "6\n":
        return None
    return "echo 1,2,3 | python3 add.py"


def to_observation(result: Result) -> str:
    """Returns what a model gets to read about a command."""
    end = f"exit code {result.exit_code}" if result.exit_code is not None else f"{result.outcome} ({result.reason})"
    return f"{result.output[-2_000:].rstrip()}\n[{end}]".lstrip()


async def work(session: Session) -> bool:
    """Runs one agent until its goal. Returns False if it gave up."""
    history: list[Result] = []
    for _ in range(MOST_TURNS):
        script = decide(history)
        if script is None:
            return True
        result = await session.run(script, timeout_ms=30_000)
        print(f"{session.id}: {to_observation(result)}")
        if result.outcome == "error":
            return False
        history.append(result)
    return False


async def main() -> int:
    async with Fleet.connect() as fleet:

        async def one(number: int) -> bool:
            async with await fleet.session(f"agent-{number}") as session:
                return await work(session)

        reached = await asyncio.gather(*(one(number) for number in range(1, AGENTS + 1)))
    print(f"{sum(reached)} of {AGENTS} agents reached their goal")
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
