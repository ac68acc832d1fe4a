"""Decoding of output."""

import unittest
from base64 import b64encode

from shellfleet.command import OutputDecoder


def piece(content: bytes, omitted: int = 0) -> dict[str, object]:
    """Returns the data of an event of output."""
    data: dict[str, object] = {"stream": "stdout", "seq": 0, "data": b64encode(content).decode(), "encoding": "base64"}
    return {**data, "omittedBytes": omitted} if omitted else data


class Texts(unittest.TestCase):
    def test_have_a_character_of_two_chunks_in_the_second_one(self) -> None:
        decoder = OutputDecoder()
        texts = [decoder.decode("1", piece(content)).text for content in (b"a\xe2\x82", b"\xacb")]
        self.assertEqual(texts, ["a", "\u20acb"])

    def test_join_no_bytes_over_a_gap_to_a_character(self) -> None:
        decoder = OutputDecoder()
        chunks = [decoder.decode("1", piece(b"a\xe2\x82")), decoder.decode("2", piece(b"\xacb", 5))]
        self.assertEqual([chunk.text for chunk in chunks], ["a", "\ufffd\ufffdb"])
        self.assertEqual(chunks[1].omitted_bytes, 5)
