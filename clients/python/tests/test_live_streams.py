"""Streams over a server that is killed and started again."""

import asyncio
import signal

from live import LiveTest, OwnServer, connect
from shellfleet import OutputChunk

LINES = 2_000
SCRIPT = f"""
for i in $(seq {LINES}); do
    echo line $i
    test $((i % 50)) = 0 && sleep 0.05
done
printf '\\377\\303'
read x"""


class Restarts(LiveTest):
    async def test_of_the_server_lose_and_double_no_byte_of_the_output(self) -> None:
        session = await self.session()
        server = OwnServer()
        self.addCleanup(server.end)
        server.start()
        await server.ready()
        async with connect(server.url) as fleet:
            command = await (await fleet.session(session.id)).submit(SCRIPT, stdin="x\n")
            result = asyncio.create_task(command.result())
            chunks: list[OutputChunk] = []
            ends = {5: signal.SIGKILL, 15: signal.SIGTERM}
            async for chunk in command.output():
                chunks.append(chunk)
                if len(chunks) in ends:
                    server.end(ends[len(chunks)])
                    server.start()
            self.assertEqual([len(chunks) > count for count in ends], [True, True])
            self.assertEqual((await result).outcome, "success")
        output = b"".join(chunk.data for chunk in chunks)
        expected = "".join(f"line {number}\n" for number in range(1, LINES + 1)).encode() + b"\xff\xc3"
        self.assertEqual(output, expected)
        self.assertEqual([chunk.seq for chunk in chunks], list(range(len(chunks))))
        self.assertEqual(sum(chunk.omitted_bytes for chunk in chunks), 0)
