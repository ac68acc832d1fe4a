"""Runs shell commands in the sessions of a Shellfleet, over its HTTP API. `shellfleet.sync` has the same without await.

```python
import asyncio
from shellfleet import Fleet

async def main() -> None:
    async with Fleet.connect() as fleet:
        session = await fleet.session("build")
        result = await session.run("uname -a")
        print(result.stdout)

asyncio.run(main())
```
"""

from .approvals import Approvals
from .batches import Batches
from .command import Command
from .errors import ShellfleetError, WireError
from .events import FleetEvent, OutputChunk, SessionEvent, StreamName
from .files import Content, Files
from .fleet import Fleet
from .infos import (
    Approval,
    BatchInfo,
    CommandInfo,
    FileInfo,
    HostInfo,
    Me,
    Process,
    SessionInfo,
    SessionState,
    TaskResult,
    ToolError,
    ToolEvent,
    ToolInfo,
    ToolResult,
)
from .options import (
    OPEN,
    ApprovalScope,
    BatchOptions,
    LimitOptions,
    OpenStdin,
    OutputOptions,
    PolicyName,
    PrefixRule,
    RedactionRule,
    RunOptions,
    SandboxOptions,
    SessionSpec,
    Stdin,
    SubmitOptions,
    Task,
)
from .results import (
    BlockedOutput,
    FirstAttempt,
    Outcome,
    Receipt,
    ReceiptPart,
    Result,
    SandboxDenied,
    ShellState,
    Timings,
    Totals,
    Truncated,
    Usage,
)
from .session import Session
from .tools import Tools

__all__ = [
    "OPEN",
    "Approval",
    "ApprovalScope",
    "Approvals",
    "BatchInfo",
    "BatchOptions",
    "Batches",
    "BlockedOutput",
    "Command",
    "CommandInfo",
    "Content",
    "FileInfo",
    "Files",
    "FirstAttempt",
    "Fleet",
    "FleetEvent",
    "HostInfo",
    "LimitOptions",
    "Me",
    "OpenStdin",
    "Outcome",
    "OutputChunk",
    "OutputOptions",
    "PolicyName",
    "PrefixRule",
    "Process",
    "Receipt",
    "ReceiptPart",
    "RedactionRule",
    "Result",
    "RunOptions",
    "SandboxDenied",
    "SandboxOptions",
    "Session",
    "SessionEvent",
    "SessionInfo",
    "SessionSpec",
    "SessionState",
    "ShellState",
    "ShellfleetError",
    "Stdin",
    "StreamName",
    "SubmitOptions",
    "Task",
    "TaskResult",
    "Timings",
    "ToolError",
    "ToolEvent",
    "ToolInfo",
    "ToolResult",
    "Tools",
    "Totals",
    "Truncated",
    "Usage",
    "WireError",
]
