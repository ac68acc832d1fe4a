"""Files in the sandbox of a session."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterable, Iterable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from . import _tar
from ._http.api import Api, Query, path_of
from ._http.connection import Response
from ._submission import to_pieces
from ._wire import Json, from_json
from .errors import ShellfleetError, only_sendable, unavailable
from .infos import FileInfo

_TAR = "application/x-tar"
_BYTES = "application/octet-stream"

Content = str | bytes | AsyncIterable[bytes] | Iterable[bytes] | BinaryIO
"""What a file gets: text, bytes, pieces, or an open binary file."""


class Files:
    """File operations inside the sandbox of a session, as its user. They run alongside its commands.

    A session without a sandbox gets one first. Paths are absolute: others raise PATH_INVALID. Raises FILE_NOT_FOUND,
    FILE_IS_DIRECTORY or FILE_DENIED as the sandbox reports it, FILE_DENIED also when a rule or a person denies the
    operation, APPROVAL_EXPIRED when nobody answers in time, and CONTAINER_LOST and SESSION_CLOSED.
    """

    def __init__(self, api: Api, session_id: str) -> None:
        self._api = api
        self._session_id = session_id

    async def read(self, path: str) -> bytes:
        """Reads the whole file. `stream` and `download` need less memory."""
        return await self._api.fetch(self._path(path))

    async def read_text(self, path: str) -> str:
        """Reads the whole file as UTF-8. Invalid bytes become U+FFFD."""
        return (await self.read(path)).decode("utf-8", "replace")

    async def stream(self, path: str) -> AsyncGenerator[bytes]:
        """Yields the file piece by piece. The file may have any size.

        Raises QUEUE_UNAVAILABLE when the connection breaks in the middle of it.
        """
        async with self._send("GET", path) as response, aclosing(self._api.pieces(response)) as pieces:
            async for piece in pieces:
                yield piece

    async def write(self, path: str, data: Content) -> None:
        """Writes the whole file in one step, and creates missing parent directories. A replaced file keeps its mode."""
        if isinstance(data, str):
            with only_sendable():
                data = data.encode()
        elif hasattr(data, "read"):
            data = _to_pieces(data)  # type: ignore[arg-type]
        body = data if isinstance(data, (bytes, _FilePieces)) else to_pieces(data)
        async with self._send("PUT", path, body=body, headers={"content-type": _BYTES}):
            pass

    async def list(self, path: str) -> list[FileInfo]:
        """Lists a directory, ordered by the bytes of the names."""
        reply = await self._call("GET", path, query={"list": True})
        return [from_json(FileInfo, item) for item in reply["items"]]

    async def stat(self, path: str) -> FileInfo:
        """Describes the path itself. A symbolic link at the path is not followed."""
        return from_json(FileInfo, await self._call("GET", path, query={"stat": True}))

    async def mkdir(self, path: str) -> None:
        """Makes a directory and its missing parents. A directory that exists already is no error."""
        await self._call("POST", path, query={"op": "mkdir"})

    async def rename(self, path: str, to: str) -> None:
        """Renames within one file system, and creates missing parents. A file with the new name is replaced.

        It is asked for once: when the connection breaks, QUEUE_UNAVAILABLE is raised and the file may have its new name.
        """
        await self._call("POST", path, query={"op": "rename", "to": to}, once=True)

    async def chmod(self, path: str, mode: int) -> None:
        """Sets the permission bits, such as 0o755."""
        await self._call("POST", path, query={"op": "chmod", "mode": f"{mode:o}"})

    async def remove(self, path: str, *, recursive: bool = True) -> None:
        """Removes a file, or a directory with everything in it."""
        await self._call("DELETE", path, query={"recursive": "true" if recursive else "false"})

    async def upload(self, local_path: str | os.PathLike[str], path: str) -> None:
        """Copies a local file or directory into the sandbox, with its permission bits, in bounded memory.

        Directories are merged, symbolic links stay links, and other kinds of files raise FILE_DENIED.
        """
        local = Path(local_path)
        if local.is_dir():
            async with self._send("PUT", path, body=_DirectoryPieces(local), headers={"content-type": _TAR}):
                return
        if not stat.S_ISREG(local.stat().st_mode):
            raise _tar.no_copy(local)
        with local.open("rb") as file:
            await self.write(path, file)
            await self.chmod(path, os.fstat(file.fileno()).st_mode & 0o777)

    async def download(self, path: str, local_path: str | os.PathLike[str]) -> None:
        """Copies a file or directory of the sandbox to this machine, with its permission bits, in bounded memory.

        A local file is replaced when its copy is complete. Nothing is written outside of the local directory: a name or
        a link that leads out of it raises FILE_DENIED, whatever the sandbox has.
        """
        local = Path(local_path)
        info = await self.stat(path)
        if info.type == "directory":
            async with self._send("GET", path, headers={"accept": _TAR}) as response:
                async with aclosing(self._pieces_of_tar(response, path)) as pieces:
                    return await _tar.unpack(pieces, local)
        local.parent.mkdir(parents=True, exist_ok=True)
        async with aclosing(self.stream(path)) as pieces:
            with _tar.replacing(local, info.mode if info.type == "file" else 0o644) as file:
                async for piece in pieces:
                    file.write(piece)

    async def _pieces_of_tar(self, response: Response, path: str) -> AsyncGenerator[bytes]:
        try:
            async with aclosing(self._api.pieces(response)) as pieces:
                async for piece in pieces:
                    yield piece
        except ShellfleetError as error:
            # A reply that has begun has no other way to tell of an error than its end.
            why = (
                f"The copy of {path} broke off. If that happens again, something in it cannot be copied: a file that "
                "changes or that the user of the sandbox may not read, a pipe or a device, or a name that is not UTF-8."
            )
            raise unavailable(f"{why} {error.message}") from error

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        *,
        body: bytes | AsyncIterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
        query: Query | None = None,
    ) -> AsyncGenerator[Response]:
        # Each may wait for the approval of a person.
        sending = self._api.send(method, self._path(path), body=body, headers=headers, query=query, patient=True)
        async with sending as response:
            yield response

    async def _call(self, method: str, path: str, *, query: Query, once: bool = False) -> Json:
        return await self._api.call(method, self._path(path), query=query, once=once, patient=True)

    def _path(self, path: str) -> str:
        if not path.startswith("/") or "\0" in path:
            raise ShellfleetError("PATH_INVALID", f"{path!r} must be an absolute path.", context={"path": path})
        files = path_of("sessions", self._session_id, "files")
        try:
            return files + quote(path, safe="/")
        except UnicodeEncodeError as error:
            message = f"{path!r} is no valid Unicode."
            raise ShellfleetError("PATH_INVALID", message, context={"path": path}) from error


def _to_pieces(file: BinaryIO) -> _FilePieces | Iterable[bytes]:
    return _FilePieces(file) if file.seekable() else _read_pieces(file)


def _read_pieces(file: BinaryIO) -> Iterable[bytes]:
    while piece := file.read(_tar.PIECE):
        yield piece


class _FilePieces:
    """The rest of an open file, as often as it is needed."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._start = file.tell()

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        self._file.seek(self._start)
        for piece in _read_pieces(self._file):
            yield piece


class _DirectoryPieces:
    """A local directory as tar, as often as it is needed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def __aiter__(self) -> AsyncGenerator[bytes]:
        return _tar.pack(self._directory)
