"""The parser of server-sent events."""

import unittest

from shellfleet._http.sse import ServerEvent, SseParser

STREAM = (
    "\ufeff: keep-alive\n\nid: 1-0\nevent: command.output\ndata: {\"é\":1}\n\n"
    "id: 2-0\r\ndata:two\r\ndata: lines\r\n\r\nevent: none\n\nretry: 5\rid:3-0\rdata\r\rid: 4-0\ndata: cut"
).encode()
EVENTS = [
    ServerEvent("1-0", "command.output", '{"é":1}'),
    ServerEvent("2-0", "message", "two\nlines"),
    ServerEvent("3-0", "message", ""),
]


class Parsing(unittest.TestCase):
    def test_yields_the_same_events_for_every_split_of_the_stream(self) -> None:
        for first in range(len(STREAM)):
            for second in range(first, len(STREAM), 7):
                parser = SseParser()
                pieces = [STREAM[:first], STREAM[first:second], STREAM[second:]]
                events = [event for piece in pieces for event in parser.feed(piece)]
                self.assertEqual(events, EVENTS, (first, second))

    def test_yields_no_event_of_which_a_part_has_arrived(self) -> None:
        parser = SseParser()
        self.assertEqual(list(parser.feed(b"id: 9\ndata: a\n")), [])
        self.assertEqual(list(parser.feed(b"\n")), [ServerEvent("9", "message", "a")])

    def test_keeps_the_last_id_for_events_without_one(self) -> None:
        self.assertEqual(list(SseParser("7").feed(b"data: a\n\n")), [ServerEvent("7", "message", "a")])
