"""Sessions, commands and files without await."""

from __future__ import annotations

import builtins
import os
from collections.abc import Generator, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .. import command as _command
from .. import files as _files
from .. import session as _session
from ..errors import ShellfleetError
from ..events import OutputChunk, SessionEvent
from ..files import Content
from ..infos import CommandInfo, FileInfo, SessionInfo
from ..options import OpenStdin, RunOptions, SubmitOptions
from ..results import Result
from ._portal import Portal

if TYPE_CHECKING:
    from typing_extensions import Unpack

Options = TypeVar("Options", SubmitOptions, RunOptions)


def portable(portal: Portal, options: Options) -> Options:
    """Returns options whose stdin does not block the loop."""
    stdin: Any = options.get("stdin")
    if stdin is None or isinstance(stdin, (str, bytes, OpenStdin)):
        return options
    given = options.copy()
    given["stdin"] = portal.pull(stdin)
    return given


class Command:
    """An accepted command, as `shellfleet.Command`."""

    id: str
    session_id: str
    deduplicated: bool

    def __init__(self, portal: Portal, command: _command.Command) -> None:
        self._portal = portal
        self._command = command
        self.id = command.id
        self.session_id = command.session_id
        self.deduplicated = command.deduplicated

    def __repr__(self) -> str:
        return repr(self._command)

    def output(self, *, after: str | None = None) -> Generator[OutputChunk]:
        """Yields the redacted output, live, as `shellfleet.Command.output`."""
        return self._portal.iterate(self._command.output(after=after))

    def result(self) -> Result:
        """Waits for the end, and returns the Result, as `shellfleet.Command.result`."""
        return self._portal.call(self._command.result())

    def info(self) -> CommandInfo:
        """Returns whether the command is `queued`, `running` or `ended`, with its Result if it has ended."""
        return self._portal.call(self._command.info())

    def log(self, *, stream: Literal["stdout", "stderr"] | None = None, start: int = 0) -> Generator[bytes]:
        """Yields the whole redacted log, as `shellfleet.Command.log`."""
        return self._portal.iterate(self._command.log(stream=stream, start=start))

    def cancel(self, reason: str | None = None) -> bool:
        """Cancels the command. Returns False if it had already ended, however."""
        return self._portal.call(self._command.cancel(reason))

    def write(self, data: str | bytes) -> None:
        """Appends to the stdin of a command with `stdin=OPEN`, as `shellfleet.Command.write`."""
        self._portal.call(self._command.write(data))

    def close_stdin(self) -> None:
        """Ends the stdin after everything that was written."""
        self._portal.call(self._command.close_stdin())

    def stdin_sent(self) -> None:
        """Waits until a stdin of pieces was sent, as `shellfleet.Command.stdin_sent`."""
        self._portal.call(self._command.stdin_sent())


class Session:
    """A persistent shell, as `shellfleet.Session`. `with` closes it at the end of the block."""

    id: str
    files: Files

    def __init__(self, portal: Portal, session: _session.Session) -> None:
        self._portal = portal
        self._session = session
        self.id = session.id
        self.files = Files(portal, session.files)

    def __repr__(self) -> str:
        return repr(self._session)

    def run(self, script: str, **options: Unpack[RunOptions]) -> Result:
        """Runs a command and returns its Result, also when the command fails. Ctrl-C cancels the command.

        `on_output` is called in the thread of the caller. Raises as `submit`.
        """
        on_output = options.pop("on_output", None)
        given = portable(self._portal, options)
        if on_output is None:
            return self._portal.call(self._session.run(script, **given))
        command = self._portal.call(self._session.submit(script, **given))
        chunks = self._portal.iterate(command.output())
        try:
            for chunk in chunks:
                on_output(chunk)
            return self._portal.call(command.result())
        except ShellfleetError:
            raise
        except BaseException:
            chunks.close()
            self._portal.call(_command.cancel_within(command, _session.CALLER_LEFT))
            raise

    def submit(self, script: str, **options: Unpack[SubmitOptions]) -> Command:
        """Submits a command and returns it when it is accepted, as `shellfleet.Session.submit`."""
        command = self._portal.call(self._session.submit(script, **portable(self._portal, options)))
        return Command(self._portal, command)

    def restart(self) -> None:
        """Replaces the shell, in order with the commands. Raises as `submit`, and RESTART_DENIED."""
        self._portal.call(self._session.restart())

    def close(self, *, purge: bool = False) -> None:
        """Ends all commands as cancellations, and frees sandbox and slot, as `shellfleet.Session.close`."""
        self._portal.call(self._session.close(purge=purge))

    def info(self) -> SessionInfo:
        """Returns the current state. Raises SESSION_NOT_FOUND."""
        return self._portal.call(self._session.info())

    def events(self, *, after: str | None = None) -> Generator[SessionEvent]:
        """Yields every event, live, until the session is closed, as `shellfleet.Session.events`."""
        return self._portal.iterate(self._session.events(after=after))

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Files:
    """File operations inside the sandbox of a session, as `shellfleet.Files`."""

    def __init__(self, portal: Portal, files: _files.Files) -> None:
        self._portal = portal
        self._files = files

    def read(self, path: str) -> bytes:
        """Reads the whole file. `stream` and `download` need less memory."""
        return self._portal.call(self._files.read(path))

    def read_text(self, path: str) -> str:
        """Reads the whole file as UTF-8. Invalid bytes become U+FFFD."""
        return self._portal.call(self._files.read_text(path))

    def stream(self, path: str) -> Generator[bytes]:
        """Yields the file piece by piece. The file may have any size."""
        return self._portal.iterate(self._files.stream(path))

    def write(self, path: str, data: Content) -> None:
        """Writes the whole file in one step, and creates missing parent directories. A replaced file keeps its mode."""
        whole = isinstance(data, (str, bytes)) or hasattr(data, "read")
        content: Any = data if whole else self._portal.pull(_as_pieces(data))
        self._portal.call(self._files.write(path, content))

    def list(self, path: str) -> builtins.list[FileInfo]:
        """Lists a directory, ordered by the bytes of the names."""
        return self._portal.call(self._files.list(path))

    def stat(self, path: str) -> FileInfo:
        """Describes the path itself. A symbolic link at the path is not followed."""
        return self._portal.call(self._files.stat(path))

    def mkdir(self, path: str) -> None:
        """Makes a directory and its missing parents. A directory that exists already is no error."""
        self._portal.call(self._files.mkdir(path))

    def rename(self, path: str, to: str) -> None:
        """Renames within one file system, and creates missing parents. A file with the new name is replaced."""
        self._portal.call(self._files.rename(path, to))

    def chmod(self, path: str, mode: int) -> None:
        """Sets the permission bits, such as 0o755."""
        self._portal.call(self._files.chmod(path, mode))

    def remove(self, path: str, *, recursive: bool = True) -> None:
        """Removes a file, or a directory with everything in it."""
        self._portal.call(self._files.remove(path, recursive=recursive))

    def upload(self, local_path: str | os.PathLike[str], path: str) -> None:
        """Copies a local file or directory into the sandbox, as `shellfleet.Files.upload`."""
        self._portal.call(self._files.upload(local_path, path))

    def download(self, path: str, local_path: str | os.PathLike[str]) -> None:
        """Copies a file or directory of the sandbox to this machine, as `shellfleet.Files.download`."""
        self._portal.call(self._files.download(path, local_path))


def _as_pieces(data: Any) -> Iterable[bytes]:
    return data
