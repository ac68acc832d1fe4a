"""Directories as tar: packs a local one, and unpacks one of a sandbox without trust in its names and links."""

from __future__ import annotations

import asyncio
import os
import stat
import tarfile
import tempfile
from collections.abc import AsyncGenerator, AsyncIterable, Iterator
from pathlib import Path
from typing import IO

from .errors import ShellfleetError

PIECE = 262_144
_MODE = 0o777


async def pack(directory: Path) -> AsyncGenerator[bytes]:
    """Yields a local directory as tar: files, directories and symbolic links, with their permission bits.

    Raises FILE_DENIED for other kinds of files.
    """
    for piece in _pack(directory):
        yield piece


def _pack(directory: Path) -> Iterator[bytes]:
    for path in _below(directory):
        info = _describe(path, path.relative_to(directory).as_posix())
        yield info.tobuf(tarfile.PAX_FORMAT)
        if info.isreg():
            yield from _content(path, info.size)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _below(directory: Path) -> Iterator[Path]:
    """Yields everything below a directory, each directory before its content. Raises OSError for one it cannot read."""
    for path in sorted(directory.iterdir()):
        yield path
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)


def _describe(path: Path, name: str) -> tarfile.TarInfo:
    status = path.lstat()
    info = tarfile.TarInfo(name)
    info.mode = status.st_mode & _MODE
    info.mtime = int(status.st_mtime)
    if stat.S_ISREG(status.st_mode):
        info.size = status.st_size
    elif stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        info.type, info.linkname = tarfile.SYMTYPE, os.readlink(path)
    else:
        raise no_copy(path)
    return info


def no_copy(path: Path) -> ShellfleetError:
    """Returns the error for something local that is not uploaded, such as a pipe, whose content may have no end."""
    return ShellfleetError("FILE_DENIED", f"{path} is no file, directory or symbolic link, and is not uploaded.")


def _content(path: Path, size: int) -> Iterator[bytes]:
    left = size
    with path.open("rb") as file:
        while left > 0:
            piece = file.read(min(left, PIECE))
            if not piece:
                raise ShellfleetError("FILE_DENIED", f"{path} became shorter while it was uploaded.")
            left -= len(piece)
            yield piece
    if size % tarfile.BLOCKSIZE:
        yield bytes(tarfile.BLOCKSIZE - size % tarfile.BLOCKSIZE)


async def unpack(pieces: AsyncIterable[bytes], directory: Path) -> None:
    """Unpacks a tar into a local directory, which is merged with what is there.

    Nothing is written outside of the directory, and no link leads out of it, as with the filter `data` of tarfile.
    Raises FILE_DENIED for a name or link that would, and for devices. Files get the permission bits of their originals,
    and are replaced when their copies are complete.
    """
    directory.mkdir(parents=True, exist_ok=True)
    # Its parent may be one in which the caller may write nothing, or another disk. The file has no name there.
    with tempfile.TemporaryFile(dir=directory) as spool:
        async for piece in pieces:
            spool.write(piece)
        spool.seek(0)
        for _ in _unpack(spool, directory):
            # Lets other tasks run between the steps.
            await asyncio.sleep(0)


# U1. Each name is resolved on the disk, through the links that are there, before anything is written at it.
# U2. In the target of a link, `..` comes before all names: after a name that is a link, or becomes one, it could lead
#     anywhere. The directory of a link is a real one and is never replaced, so what leads inside continues to do so.
# U3. Modes of directories are set last: a directory without write permission must first be filled.
def _unpack(spool: IO[bytes], directory: Path) -> Iterator[None]:
    root = directory.resolve()
    modes: list[tuple[Path, int]] = []
    try:
        with tarfile.open(fileobj=spool, mode="r:") as archive:
            for member in archive:
                target = _place(root, member.name)
                if member.isdir():
                    _make_directory(target)
                    modes.append((target, member.mode & _MODE))
                elif target == root:
                    raise _refuse(member.name, "is the directory itself")
                elif member.issym():
                    _make_link(root, target, member)
                elif member.isreg():
                    yield from _write_file(archive, member, target)
                else:
                    raise _refuse(member.name, "is no file, directory or symbolic link")
                yield
    except tarfile.TarError as error:
        raise ShellfleetError("INTERNAL", f"The archive of the directory is damaged: {error}.") from error
    for path, mode in reversed(modes):
        path.chmod(mode)


def _place(root: Path, name: str) -> Path:
    """Returns the path for a name of an archive, whose directory is below the root, also through links."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise _refuse(name, "leads out of the directory")
    if not parts:
        return root
    parent = root.joinpath(*parts[:-1]).resolve()
    if not parent.is_relative_to(root):
        raise _refuse(name, "leads out of the directory")
    return parent / parts[-1]


def _make_directory(target: Path) -> None:
    if target.is_symlink():
        target.unlink()
    target.mkdir(parents=True, exist_ok=True)


def _make_link(root: Path, target: Path, member: tarfile.TarInfo) -> None:
    parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
    ups = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    goal = Path(os.path.normpath(target.parent.joinpath(*parts)))
    leads_out = not goal.is_relative_to(root) or not Path(os.path.realpath(goal)).is_relative_to(root)
    if os.path.isabs(member.linkname) or ".." in parts[ups:] or leads_out:
        raise _refuse(member.name, f"is a link to {member.linkname!r}, out of the directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    target.symlink_to(member.linkname)


def _write_file(archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> Iterator[None]:
    source = archive.extractfile(member)
    if source is None:
        raise _refuse(member.name, "has no content")
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target, member.mode) as file:
        while piece := source.read(PIECE):
            file.write(piece)
            yield


class replacing:
    """A file that takes the place of another when it is complete. It is removed if that fails."""

    def __init__(self, target: Path, mode: int) -> None:
        self._target = target
        self._mode = mode & _MODE
        handle, name = tempfile.mkstemp(prefix=".shellfleet-", dir=target.parent)
        self._file = os.fdopen(handle, "wb")
        self._path = Path(name)

    def __enter__(self) -> IO[bytes]:
        return self._file

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._file.close()
        try:
            if kind is None:
                self._path.chmod(self._mode)
                self._path.replace(self._target)
        finally:
            self._path.unlink(missing_ok=True)


def _refuse(name: str, why: str) -> ShellfleetError:
    return ShellfleetError("FILE_DENIED", f"{name!r} {why}, so the download stopped.", context={"path": name})
