"""The client without await, for programs that do not use asyncio: the names of `shellfleet`, as blocking calls.

```python
from shellfleet.sync import Fleet

with Fleet.connect() as fleet:
    result = fleet.session("build").run("uname -a")
    print(result.stdout)
```

Several threads may use one Fleet. Ctrl-C during `run` cancels the command.
"""

from .fleet import Approvals, Batches, Fleet, Tools
from .session import Command, Files, Session

__all__ = ["Approvals", "Batches", "Command", "Files", "Fleet", "Session", "Tools"]
