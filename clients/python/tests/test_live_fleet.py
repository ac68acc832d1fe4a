"""Approvals, batches, tools and hosts, through the API of a real fleet."""

import asyncio

from live import LiveTest, new_id, stage
from shellfleet import Approval, Fleet, PrefixRule, Result, Session, ShellfleetError, Task


class Approvals(LiveTest):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.operator = await Fleet.connect(stage().url, stage().operator_key)

    async def asyncTearDown(self) -> None:
        await self.operator.close()
        await super().asyncTearDown()

    async def ask(self, script: str) -> tuple[Session, "asyncio.Task[Result]", Approval]:
        """Runs a command that asks a person, and returns the question."""
        rules: list[PrefixRule] = [{"pattern": ["touch"], "decision": "prompt"}]
        session = await self.session({"exec_policy": rules, "approval": "on-request"})
        running = asyncio.create_task(session.run(script))
        events = self.operator.approvals.watch()
        async for approval in events:
            if approval.session_id == session.id and approval.state == "pending":
                await events.aclose()
                return session, running, approval
        raise AssertionError("The stream of questions ended.")

    async def test_let_another_key_approve_what_a_command_asks(self) -> None:
        session, running, approval = await self.ask("touch approved && echo done")
        self.assertEqual((approval.script, approval.count), ("touch approved && echo done", 1))
        self.assertEqual([one.id for one in await self.operator.approvals.list(session_id=session.id)], [approval.id])
        with self.assertRaises(ShellfleetError) as caught:
            await self.fleet.approvals.approve(approval.id)
        self.assertEqual(caught.exception.code, "UNAUTHORIZED")
        await self.operator.approvals.approve(approval.id)
        self.assertEqual((await running).stdout, "done\n")
        self.assertEqual(await self.operator.approvals.list(session_id=session.id), [])

    async def test_deny_with_a_reason(self) -> None:
        _, running, approval = await self.ask("touch denied")
        await self.operator.approvals.deny(approval.id, "not today")
        result = await running
        self.assertEqual((result.outcome, result.reason), ("denial", "approver"))
        self.assertIn("not today", result.stderr)
        with self.assertRaises(ShellfleetError) as caught:
            await self.operator.approvals.approve(approval.id)
        self.assertEqual(caught.exception.code, "APPROVAL_NOT_FOUND")

    async def test_hold_for_a_session_until_they_are_revoked(self) -> None:
        session, running, approval = await self.ask("touch again")
        await self.operator.approvals.approve(approval.id, scope="session")
        await running
        self.assertEqual((await session.run("touch again")).outcome, "success")
        await self.operator.approvals.revoke(approval.id)
        asking = await session.submit("touch again", start_deadline_ms=300)
        self.assertEqual((await asking.result()).outcome, "timeout")


class Batches(LiveTest):
    def tasks(self) -> list[Task]:
        return [{"id": f"t{number}", "script": f"exit {number}", "grade": "echo 0.5"} for number in range(2)]

    async def test_yield_the_results_of_their_tasks(self) -> None:
        name = new_id()
        results = {one.id: one async for one in self.fleet.batch(self.tasks(), name=name, spec={"policy": "host"})}
        self.assertEqual([(results[id].passed, results[id].score) for id in ("t0", "t1")], [(True, 0.5)] * 2)
        self.assertEqual([results[id].results[0].exit_code for id in ("t0", "t1")], [0, 1])
        info = await self.fleet.batches.get(name)
        self.assertEqual((info.state, info.results), ("ended", 2))
        self.assertIn(name, [one.name for one in await self.fleet.batches.list()])
        again = [one.id async for one in self.fleet.batches.results(name, follow=False)]
        self.assertEqual(sorted(again), ["t0", "t1"])
        await self.fleet.batches.remove(name)
        with self.assertRaises(ShellfleetError) as caught:
            await self.fleet.batches.get(name)
        self.assertEqual(caught.exception.code, "BATCH_NOT_FOUND")

    async def test_are_cancelled_and_refuse_invalid_tasks(self) -> None:
        name = new_id()
        await self.fleet.batches.submit([{"id": "long", "script": "sleep 60"}], name=name, spec={"policy": "host"})
        self.assertTrue(await self.fleet.batches.cancel(name))
        outcomes = [one.outcome async for one in self.fleet.batches.results(name)]
        self.assertEqual([one for one in outcomes if one != "cancellation"], [])
        with self.assertRaises(ShellfleetError) as caught:
            await self.fleet.batches.submit([{"id": "x", "script": ""}, {"id": "x"}])
        self.assertEqual(caught.exception.code, "COMMAND_INVALID")


class Operators(LiveTest):
    async def test_see_hosts_and_events_of_the_fleet(self) -> None:
        (host,) = await self.fleet.hosts()
        self.assertEqual((host.id, host.state, host.slots), ("h1", "up", 40))
        self.assertEqual((self.fleet.me.name, self.fleet.me.tenant), ("agent", "default"))
        events = self.fleet.events()
        seen = asyncio.ensure_future(anext(events))
        while not seen.done():
            await (await self.session()).run("true")
        self.assertRegex((await seen).type, r"^(session|command)\.")
        await events.aclose()

    async def test_call_tools(self) -> None:
        tools = await self.fleet.tools.list()
        self.assertIn("add", [tool.name for tool in tools])
        result = await self.fleet.tools.call("add", {"a": 2, "b": 3})
        self.assertEqual((result.ok, result.output), (True, {"sum": 5}))
        failed = await self.fleet.tools.call("no-such-tool")
        assert failed.error is not None
        self.assertEqual((failed.ok, failed.error.code), (False, "unknown-tool"))
        events = self.fleet.tools.watch()
        first = await anext(events)
        await events.aclose()
        assert first.tool is not None
        self.assertEqual(first.type, "tool.added")
