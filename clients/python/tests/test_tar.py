"""Directories as tar."""

import asyncio
import io
import os
import tarfile
import tempfile
import unittest
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import IO
from unittest.mock import patch

from shellfleet import ShellfleetError
from shellfleet._tar import pack, unpack


async def pieces_of(data: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(data), 1_000):
        yield data[start : start + 1_000]


def archive_of(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


class Directories(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.base = Path(directory.name)
        self.target = self.base / "target"

    def unpack(self, data: bytes) -> None:
        asyncio.run(unpack(pieces_of(data), self.target))

    def refused(self, *members: tuple[tarfile.TarInfo, bytes]) -> None:
        with self.assertRaises(ShellfleetError) as caught:
            self.unpack(archive_of(*members))
        self.assertEqual(caught.exception.code, "FILE_DENIED")
        self.assertEqual(sorted(path.name for path in self.base.iterdir()), ["outside", "target"])
        self.assertEqual((self.base / "outside").read_text(), "untouched")

    def test_come_back_as_they_were_packed(self) -> None:
        source = self.base / "source"
        (source / "deep" / ("n" * 120)).mkdir(parents=True)
        (source / "empty").mkdir()
        (source / "run.sh").write_bytes(b"#!/bin/sh\n" * 100_000)
        (source / "run.sh").chmod(0o755)
        (source / "deep" / ("n" * 120) / "ü.txt").write_text("ü")
        (source / "link").symlink_to("deep")
        (source / "closed").mkdir()
        (source / "closed" / "in").write_text("in")
        (source / "closed").chmod(0o500)

        async def copy() -> None:
            await unpack(pack(source), self.target)

        asyncio.run(copy())
        names = sorted(str(path.relative_to(source)) for path in source.rglob("*"))
        self.assertEqual(sorted(str(path.relative_to(self.target)) for path in self.target.rglob("*")), names)
        for name in names:
            ours, theirs = self.target / name, source / name
            self.assertEqual(ours.lstat().st_mode, theirs.lstat().st_mode, name)
            if ours.is_file():
                self.assertEqual(ours.read_bytes(), theirs.read_bytes(), name)
        self.assertEqual(os.readlink(self.target / "link"), "deep")
        (source / "closed").chmod(0o700)
        (self.target / "closed").chmod(0o700)

    def test_replace_files_and_links_and_keep_what_else_is_there(self) -> None:
        self.target.mkdir()
        (self.base / "outside").write_text("untouched")
        (self.target / "other").write_text("stays")
        (self.target / "a").symlink_to(self.base / "outside")
        self.unpack(archive_of((member("./a"), b"new")))
        self.assertEqual((self.target / "a").read_text(), "new")
        self.assertEqual((self.target / "other").read_text(), "stays")
        self.assertEqual((self.base / "outside").read_text(), "untouched")

    def test_lead_nowhere_outside_by_names_or_links(self) -> None:
        self.target.mkdir()
        (self.base / "outside").write_text("untouched")
        self.refused((member("../outside"), b"bad"))
        self.refused((member("a/../../outside"), b"bad"))
        self.refused((member("up", tarfile.SYMTYPE, ".."), b""), (member("up/outside"), b"bad"))
        self.refused((member("abs", tarfile.SYMTYPE, str(self.base)), b""), (member("abs/outside"), b"bad"))
        here = member("here", tarfile.SYMTYPE, ".")
        self.refused((here, b""), (member("here/on", tarfile.SYMTYPE, "../outside"), b""))
        # `by/..` is the target itself for its name, and the directory above it on the disk.
        made = (member("a", tarfile.DIRTYPE), b""), (member("a/by", tarfile.SYMTYPE, ".."), b"")
        self.refused(*made, (member("b", tarfile.SYMTYPE, "a/by/.."), b""))
        self.refused((member("b", tarfile.SYMTYPE, "later/.."), b""), (member("later", tarfile.SYMTYPE, "."), b""))
        self.refused((member("hard", tarfile.LNKTYPE, "../outside"), b""))
        self.refused((member("null", tarfile.CHRTYPE), b""))
        self.refused((member("pipe", tarfile.FIFOTYPE), b""))

    def test_write_through_no_link_that_was_there_before(self) -> None:
        self.target.mkdir()
        (self.base / "outside").write_text("untouched")
        (self.target / "way").symlink_to(self.base)
        self.refused((member("way/outside"), b"bad"))

    def test_keep_links_that_lead_to_each_other_also_the_second_time(self) -> None:
        links = [(member(name, tarfile.SYMTYPE, to), b"") for name, to in (("a", "b"), ("b", "a"), ("c", "c"))]
        self.unpack(archive_of(*links))
        self.unpack(archive_of(*links))
        self.assertEqual(os.readlink(self.target / "c"), "c")

    def test_leave_no_part_of_a_file_whose_place_is_taken(self) -> None:
        (self.target / "a").mkdir(parents=True)
        with self.assertRaises(OSError):
            self.unpack(archive_of((member("a"), b"x")))
        self.assertEqual([path.name for path in self.target.iterdir()], ["a"])

    def test_treat_absolute_names_as_names_below(self) -> None:
        self.unpack(archive_of((member("/etc/passwd"), b"mine")))
        self.assertEqual((self.target / "etc" / "passwd").read_text(), "mine")

    def test_give_no_special_permission_bits(self) -> None:
        self.unpack(archive_of((member("s", mode=0o4755), b"x")))
        self.assertEqual((self.target / "s").stat().st_mode & 0o7777, 0o755)

    def test_refuse_to_pack_what_is_no_file(self) -> None:
        os.mkfifo(self.base / "pipe")

        async def read() -> None:
            async for _ in pack(self.base):
                pass

        with self.assertRaises(ShellfleetError):
            asyncio.run(read())

    def test_are_packed_as_a_whole_or_not_at_all(self) -> None:
        (self.base / "a" / "b").mkdir(parents=True)
        (self.base / "a" / "b" / "c").write_text("c")
        (self.base / "link").symlink_to("a")

        async def names() -> list[str]:
            data = b"".join([piece async for piece in pack(self.base)])
            with tarfile.open(fileobj=io.BytesIO(data)) as archive:
                return archive.getnames()

        self.assertEqual(asyncio.run(names()), ["a", "a/b", "a/b/c", "link"])
        read = Path.iterdir

        # The user of a test may be root, who may read everything.
        def refuse(path: Path) -> Iterator[Path]:
            if path.name == "b":
                raise PermissionError(13, "Permission denied", str(path))
            yield from read(path)

        with patch.object(Path, "iterdir", refuse), self.assertRaises(PermissionError):
            asyncio.run(names())

    def test_need_no_right_to_write_beside_them(self) -> None:
        made: list[Path] = []
        spool = tempfile.TemporaryFile

        def note(dir: Path) -> IO[bytes]:
            made.append(dir)
            return spool(dir=dir)

        with patch.object(tempfile, "TemporaryFile", note):
            self.unpack(archive_of((member("a"), b"x")))
        self.assertEqual((made, [path.name for path in self.target.iterdir()]), ([self.target], ["a"]))

    def test_leave_no_half_of_a_damaged_archive_unsaid(self) -> None:
        whole = archive_of((member("a"), b"x" * 5_000))
        with self.assertRaises(ShellfleetError):
            self.unpack(whole[:2_000])
        self.assertEqual([path.name for path in self.target.iterdir()], [])
