"""Files, through the API of a real fleet."""

import hashlib
import io
import os
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from live import LiveTest, stage
from shellfleet import ShellfleetError
from shellfleet.sync import Fleet as SyncFleet


class Files(LiveTest):
    async def test_are_written_from_every_kind_of_data_and_read_back(self) -> None:
        session = await self.session()
        files = session.files
        base = (await session.run("pwd")).stdout.strip()

        async def pieces() -> AsyncGenerator[bytes]:
            for _ in range(40):
                yield b"x" * 50_000

        await files.write(f"{base}/new/täxt #1?.txt", "ä")
        self.assertEqual(await files.read_text(f"{base}/new/täxt #1?.txt"), "ä")
        for data, expected in [
            (b"\xff", b"\xff"),
            (b"", b""),
            (pieces(), b"x" * 2_000_000),
            ([b"a", b"b"], b"ab"),
            (io.BytesIO(b"y" * 300_000), b"y" * 300_000),
        ]:
            await files.write(f"{base}/data", data)
            self.assertEqual(await files.read(f"{base}/data"), expected)
        self.assertEqual((await session.run(f"wc -c < {base}/data")).stdout.strip(), "300000")

    async def test_are_listed_described_moved_and_removed(self) -> None:
        session = await self.session()
        files = session.files
        base = (await session.run("pwd")).stdout.strip() + "/moved"
        await files.mkdir(f"{base}/deep")
        await files.write(f"{base}/b", "bb")
        await files.chmod(f"{base}/b", 0o750)
        info = await files.stat(f"{base}/b")
        self.assertEqual((info.name, info.type, info.size, info.mode), ("b", "file", 2, 0o750))
        self.assertEqual([one.name for one in await files.list(base)], ["b", "deep"])
        await files.rename(f"{base}/b", f"{base}/deep/c")
        self.assertEqual([one.path for one in await files.list(f"{base}/deep")], [f"{base}/deep/c"])
        await files.remove(f"{base}/deep")
        with self.assertRaises(ShellfleetError) as caught:
            await files.read(f"{base}/deep/c")
        self.assertEqual(caught.exception.code, "FILE_NOT_FOUND")
        self.assertIn(f"{base}/deep/c", caught.exception.message)
        with self.assertRaises(ShellfleetError) as caught:
            await files.read(base)
        self.assertEqual(caught.exception.code, "FILE_IS_DIRECTORY")
        with self.assertRaises(ShellfleetError) as caught:
            await files.read("relative")
        self.assertEqual(caught.exception.code, "PATH_INVALID")

    async def test_and_directories_are_copied_in_and_out_with_their_modes(self) -> None:
        session = await self.session()
        base = (await session.run("pwd")).stdout.strip()
        with tempfile.TemporaryDirectory() as directory:
            local = Path(directory)
            (local / "in" / "deep").mkdir(parents=True)
            (local / "in" / "run.sh").write_text("#!/bin/sh\necho ran\n")
            (local / "in" / "run.sh").chmod(0o755)
            (local / "in" / "deep" / "link").symlink_to("../run.sh")
            await session.files.upload(local / "in", f"{base}/tree")
            ran = await session.run(f"cd {base}/tree && ./deep/link && seq 200000 > deep/big && sha256sum < deep/big")
            await session.files.download(f"{base}/tree", local / "out")
            content = (local / "out" / "deep" / "big").read_bytes()
            self.assertEqual(ran.stdout.split()[:2], ["ran", hashlib.sha256(content).hexdigest()])
            self.assertEqual((local / "out" / "run.sh").stat().st_mode & 0o777, 0o755)
            self.assertEqual((local / "out" / "deep" / "link").readlink(), Path("../run.sh"))
            await session.files.upload(local / "in" / "run.sh", f"{base}/one")
            await session.files.download(f"{base}/one", local / "one")
            self.assertEqual((local / "one").stat().st_mode & 0o777, 0o755)
            os.mkfifo(local / "pipe")
            with self.assertRaisesRegex(ShellfleetError, "FILE_DENIED"):
                await session.files.upload(local / "pipe", f"{base}/pipe")
            await session.run(f"ln -s /etc {base}/tree/out-of-it")
            with self.assertRaises(ShellfleetError) as caught:
                await session.files.download(f"{base}/tree", local / "other")
            self.assertEqual(caught.exception.code, "FILE_DENIED")

    async def test_have_the_same_calls_without_await(self) -> None:
        session = await self.session()
        base = (await session.run("pwd")).stdout.strip()
        with SyncFleet.connect(stage().url, stage().key) as fleet:
            attached = fleet.attach(session.id)
            assert attached is not None
            files = attached.files
            files.write(f"{base}/sync", iter([b"a", b"b"]))
            files.write(f"{base}/file", io.BytesIO(b"c"))
            self.assertEqual((files.read(f"{base}/sync"), b"".join(files.stream(f"{base}/file"))), (b"ab", b"c"))
            files.mkdir(f"{base}/d")
            files.rename(f"{base}/sync", f"{base}/d/sync")
            files.chmod(f"{base}/d/sync", 0o600)
            self.assertEqual([one.mode for one in files.list(f"{base}/d")], [0o600])
            files.remove(f"{base}/d")
            self.assertEqual(files.stat(f"{base}/file").size, 1)
            self.assertEqual(files.read_text(f"{base}/file"), "c")
