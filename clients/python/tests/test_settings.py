"""Where the client finds its API."""

import json
import tempfile
import unittest
from pathlib import Path

from shellfleet import ShellfleetError
from shellfleet._settings import connection_file, find_endpoint


class FindingTheApi(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.env = {"SHELLFLEET_STATE_DIR": directory.name}
        self.file = Path(directory.name) / "fleet.json"

    def refused(self, code: str, url: str | None = None, key: str | None = None) -> str:
        with self.assertRaises(ShellfleetError) as caught:
            find_endpoint(url, key, self.env)
        self.assertEqual(caught.exception.code, code)
        return caught.exception.message

    def test_takes_the_arguments_first_then_the_environment_then_the_connection_file(self) -> None:
        self.file.write_text(json.dumps({"version": 1, "api": {"url": "http://127.0.0.1:1", "key": "of-file"}}))
        found = find_endpoint(None, None, self.env)
        self.assertEqual((found.port, found.key), (1, "of-file"))
        self.env |= {"SHELLFLEET_URL": "http://127.0.0.1:2", "SHELLFLEET_API_KEY": "of-env"}
        found = find_endpoint(None, None, self.env)
        self.assertEqual((found.port, found.key), (2, "of-env"))
        found = find_endpoint("http://127.0.0.1:3", "given", self.env)
        self.assertEqual((found.port, found.key), (3, "given"))

    def test_sends_the_key_of_the_connection_file_to_no_other_address(self) -> None:
        self.file.write_text(json.dumps({"version": 1, "api": {"url": "http://127.0.0.1:1", "key": "of-file"}}))
        self.assertIn("no key", self.refused("COMMAND_INVALID", "http://elsewhere:1"))

    def test_says_what_to_do_when_there_is_no_api(self) -> None:
        self.assertIn("shellfleet up", self.refused("QUEUE_UNAVAILABLE"))
        self.file.write_text('{"version": 1}')
        self.assertIn("shellfleet serve", self.refused("QUEUE_UNAVAILABLE"))
        self.file.write_text("{")
        self.assertIn(str(self.file), self.refused("REDIS_UNSUITABLE"))

    def test_refuses_what_is_no_address(self) -> None:
        for url in ["127.0.0.1:7410", "ftp://a", "http://", "http://user:secret@a", "http://a:99999"]:
            self.refused("COMMAND_INVALID", url, "k")
        self.refused("COMMAND_INVALID", "http://a", "k\r\nx: y")

    def test_never_shows_the_key(self) -> None:
        self.assertNotIn("secret", repr(find_endpoint("http://a", "secret", {})))

    def test_knows_ports_paths_and_ipv6(self) -> None:
        found = find_endpoint("https://fleet.example/shell/", "k", {})
        self.assertEqual((found.authority, found.url), ("fleet.example", "https://fleet.example/shell"))
        self.assertEqual(find_endpoint("http://[::1]:7410", "k", {}).authority, "[::1]:7410")

    def test_looks_for_the_file_where_up_writes_it(self) -> None:
        found = [
            connection_file(env)
            for env in ({"SHELLFLEET_STATE_DIR": "/s"}, {"XDG_STATE_HOME": "/x", "HOME": "/h"}, {"HOME": "/h"})
        ]
        expected = ["/s/fleet.json", "/x/shellfleet/fleet.json", "/h/.local/state/shellfleet/fleet.json"]
        self.assertEqual([str(path) for path in found], expected)
