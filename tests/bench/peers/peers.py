"""Runs commands with a Python library that people use instead, and measures them.

peers.py langchain|swe-rex: reads one request a line on stdin, {"idle": SCRIPT, "samples": N} or {"sessions": N,
"perSession": N}, and answers each with a line: the milliseconds of each command, or commands per second.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

OUTPUTS = {"true": "", "echo hi": "hi"}
Run = Callable[[str], Awaitable[str]]


async def open_langchain() -> Run:
    """Opens a session of the shell tool of LangChain, as its middleware does on the host."""
    middleware: Any = importlib.import_module("langchain.agents.middleware")
    shell_tool: Any = importlib.import_module("langchain.agents.middleware.shell_tool")
    workspace = Path(tempfile.mkdtemp(prefix="langchain-shell-"))
    session = shell_tool.ShellSession(workspace, middleware.HostExecutionPolicy(), ("/bin/bash",), {})
    session.start()

    async def run(script: str) -> str:
        # The middleware calls it in a thread, as every synchronous tool.
        return (await asyncio.to_thread(session.execute, script, timeout=30.0)).output

    return run


async def open_swe_rex() -> Run:
    """Opens a session of the local runtime of SWE-ReX, in this process."""
    local: Any = importlib.import_module("swerex.runtime.local")
    abstract: Any = importlib.import_module("swerex.runtime.abstract")
    runtime = local.LocalRuntime()
    await runtime.create_session(abstract.CreateBashSessionRequest())

    async def run(script: str) -> str:
        return (await runtime.run_in_session(abstract.BashAction(command=script, timeout=30.0))).output

    return run


OPENERS = {"langchain": open_langchain, "swe-rex": open_swe_rex}


async def run_checked(run: Run, script: str) -> float:
    start = time.perf_counter()
    output = await run(script)
    took = (time.perf_counter() - start) * 1_000
    if output.strip() != OUTPUTS[script]:  # SWE-ReX reads from a terminal, which adds ends of lines
        raise RuntimeError(f"{script} gave {output!r}")
    return took


async def main() -> None:
    opener = OPENERS[sys.argv[1]]
    sessions: list[Run] = []

    async def want(count: int) -> None:
        while len(sessions) < count:
            sessions.append(await opener())
            await run_checked(sessions[-1], "true")

    async def in_turn(run: Run, times: int) -> None:
        for _ in range(times):
            await run_checked(run, "echo hi")

    await want(1)
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        if "idle" in request:
            answer: Any = [await run_checked(sessions[0], request["idle"]) for _ in range(request["samples"])]
        else:
            await want(request["sessions"])
            start = time.perf_counter()
            await asyncio.gather(*(in_turn(run, request["perSession"]) for run in sessions[: request["sessions"]]))
            answer = request["sessions"] * request["perSession"] / (time.perf_counter() - start)
        print(json.dumps(answer), flush=True)


asyncio.run(main())
