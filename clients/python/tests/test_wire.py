"""The JSON of the API and the types of the package."""

import unittest
from dataclasses import asdict
from typing import Any

from shellfleet import OPEN, Approval, Result, SessionInfo, ShellfleetError
from shellfleet._submission import to_submission
from shellfleet._wire import from_json, to_camel, to_json, to_plain, to_snake

RESULT: dict[str, Any] = {
    "commandId": "a.01",
    "sessionId": "a",
    "outcome": "failure",
    "exitCode": 3,
    "signal": None,
    "stdout": "out",
    "stderr": "",
    "output": "out",
    "truncated": {"bytes": False, "lines": True},
    "totals": {"stdoutBytes": 3, "stderrBytes": 0, "stdoutLines": 1, "stderrLines": 0},
    "redactions": {"email_address": 2},
    "deduplicated": False,
    "shell": {"state": "kept", "epoch": 1},
    "timings": {"queuedMs": 1, "startMs": 2.5, "runMs": 3, "totalMs": 6.5},
    "hostId": "h1",
    "reason": "exited",
    "receipt": {
        "acceptedAt": "t",
        "storedAt": "u",
        "totalMs": 7,
        "parts": [{"step": "slot", "ms": 7, "clock": "redis"}],
    },
    "aFieldOfTomorrow": {"a": 1},
}


class Names(unittest.TestCase):
    def test_are_in_snake_case_here_and_in_camel_case_in_the_api(self) -> None:
        for snake, camel in [("timeout_ms", "timeoutMs"), ("id", "id"), ("no_output_timeout_ms", "noOutputTimeoutMs")]:
            self.assertEqual(to_camel(snake), camel)
            self.assertEqual(to_snake(camel), snake)

    def test_of_variables_labels_and_paths_stay_as_they_are(self) -> None:
        spec = {
            "env": {"MY_VAR": "1"},
            "labels": {"a_b": "c_d"},
            "limits": {"memory_bytes": 1, "resources": {"nvidia.com/gpu_x": 1}},
            "policy": {"type": "codex", "config_overrides": {"sandbox_workspace_write.x": True}},
            "exec_policy": [{"pattern": ["a_b"], "decision": "allow", "not_match": ["x_y"]}],
            "user": None,
        }
        self.assertEqual(
            to_json(spec),
            {
                "env": {"MY_VAR": "1"},
                "labels": {"a_b": "c_d"},
                "limits": {"memoryBytes": 1, "resources": {"nvidia.com/gpu_x": 1}},
                "policy": {"type": "codex", "configOverrides": {"sandbox_workspace_write.x": True}},
                "execPolicy": [{"pattern": ["a_b"], "decision": "allow", "notMatch": ["x_y"]}],
            },
        )

    def test_of_data_without_a_type_are_in_snake_case(self) -> None:
        self.assertEqual(to_plain({"hostId": "h", "list": [{"aB": 1}]}), {"host_id": "h", "list": [{"a_b": 1}]})


class Dataclasses(unittest.TestCase):
    def test_come_from_json_whose_unknown_fields_are_left_out(self) -> None:
        result = from_json(Result, RESULT)
        self.assertEqual((result.exit_code, result.truncated.lines, result.timings.start_ms), (3, True, 2.5))
        self.assertEqual(result.redactions, {"email_address": 2})
        assert result.receipt is not None
        self.assertEqual([part.step for part in result.receipt.parts], ["slot"])
        self.assertIsNone(result.error)

    def test_have_the_error_of_a_result(self) -> None:
        error = {"code": "CONTAINER_LOST", "message": "gone", "retryable": False}
        result = from_json(Result, {**RESULT, "outcome": "error", "exitCode": None, "error": error})
        assert result.error is not None
        self.assertEqual((result.error.code, result.error.context), ("CONTAINER_LOST", {}))

    def test_with_a_missing_field_are_an_error_that_names_it(self) -> None:
        with self.assertRaises(ShellfleetError) as caught:
            from_json(Result, {"commandId": "a.01"})
        self.assertEqual(caught.exception.code, "PROTOCOL_MISMATCH")
        self.assertIn("sessionId", caught.exception.message)

    def test_leave_optional_fields_at_their_defaults(self) -> None:
        given = {"id": "a", "state": "ready", "hostId": None, "epoch": 0, "queuedCommands": 0}
        info = from_json(SessionInfo, {**given, "createdAt": "t", "lastActiveAt": "t", "labels": {"a": "b"}})
        self.assertEqual(asdict(info)["labels"], {"a": "b"})
        self.assertEqual((info.background, info.position), ((), None))

    def test_have_none_for_null(self) -> None:
        given = {"id": "q", "state": "pending", "sessionId": "a", "commandId": "a.1", "script": "ls", "reason": "r"}
        asked = {"place": "docker", "count": 1, "askedAt": "t", "expiresAt": "t", "env": ["A"], "firstAttempt": None}
        approval = from_json(Approval, {**given, **asked})
        self.assertEqual((approval.first_attempt, approval.env), (None, ("A",)))


class Submissions(unittest.TestCase):
    def test_have_options_in_camel_case_and_a_key_in_the_headers(self) -> None:
        submission = to_submission("ls", {"timeout_ms": 5, "env": {"A_B": "c"}, "cwd": None, "idempotency_key": "k"})
        self.assertEqual(submission.body, {"script": "ls", "timeoutMs": 5, "env": {"A_B": "c"}})
        self.assertEqual((submission.headers, submission.own_key), ({"idempotency-key": "k"}, True))

    def test_get_a_key_of_their_own(self) -> None:
        first, second = (to_submission("ls", {}) for _ in range(2))
        self.assertNotEqual(first.key, second.key)
        self.assertFalse(first.own_key)

    def test_carry_a_short_stdin_and_leave_a_long_one_open(self) -> None:
        stdins = ["text", b"\xff", OPEN, "x" * 600_000, [b"a"]]
        sent = [to_submission("cat", {"stdin": stdin}) for stdin in stdins]
        self.assertEqual(
            [(one.body["stdin"], one.stream is not None) for one in sent],
            [
                ("text", False),
                ({"base64": "/w=="}, False),
                ({"open": True}, False),
                ({"open": True}, True),
                ({"open": True}, True),
            ],
        )
