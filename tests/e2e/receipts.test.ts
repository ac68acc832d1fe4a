import type { Receipt, ReceiptStep, Result } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Where the time of a command went, on a fleet with one slot.

/** Difference of sums of times that clocks round to ms. */
const ROUNDING_MS = 5;
const MIB = 2 ** 20;

let stack: TestFleet;
let cli: FleetCli;
beforeAll(async () => {
  stack = await startFleet({ slots: 1 });
  cli = new FleetCli(stack);
});
afterAll(() => stack?.[Symbol.asyncDispose]());

/** Checks the sums, and returns the receipt. */
function receiptOf({ receipt, timings }: Result): Receipt {
  if (receipt === undefined) throw new Error('the Result has no receipt');
  const sum = receipt.parts.reduce((total, { ms }) => total + ms, 0);
  expect(Math.abs(sum - receipt.totalMs)).toBeLessThanOrEqual(ROUNDING_MS);
  expect(receipt.totalMs).toBe(Date.parse(receipt.storedAt) - Date.parse(receipt.acceptedAt));
  expect(timings.totalMs).toBe(timings.queuedMs + timings.startMs + timings.runMs);
  expect(timings.totalMs).toBeLessThanOrEqual(receipt.totalMs + ROUNDING_MS);
  expect(msOf(receipt, 'running')).toBe(timings.runMs);
  return receipt;
}

const msOf = ({ parts }: Receipt, step: ReceiptStep) =>
  parts.reduce((total, part) => total + (part.step === step ? part.ms : 0), 0);

async function explain(id: string): Promise<string> {
  const { exitCode, stdout, stderr } = await cli.text(['explain', id]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}

describe('the receipt of a command', () => {
  test('names the slot that it waits for, in `explain` then and afterwards', async () => {
    await using holder = await stack.fleet.session('holds-the-slot');
    await holder.run('true');
    await using session = await stack.fleet.session('needs-a-slot');
    const began = performance.now();
    const command = await session.submit('sleep 0.2; echo ran');
    const accepted = performance.now();
    await until(
      () => session.info(),
      ({ position }) => position === 1,
    );
    await until(
      () => stack.fleet.hosts(),
      ([host]) => host?.free === 0,
    );
    expect(await explain('needs-a-slot')).toBe(
      [
        'All slots are taken: needs-a-slot waits for one (1st of 1).',
        'How long that takes is not known yet, because no slot was freed recently.',
        'Its host must accept: policy docker.',
        'Host h1 has 0 of 1 slots free.',
        '',
      ].join('\n'),
    );
    expect(await explain(command.id)).toMatch(`${command.id} has not ended: it is waiting.\nAll slots are taken`);
    const waitedMs = performance.now() - accepted;
    await holder.close();
    const result = await command.result();
    const tookMs = performance.now() - began;
    const receipt = receiptOf(result);
    expect(msOf(receipt, 'slot')).toBeGreaterThanOrEqual(Math.floor(waitedMs));
    expect(receipt.totalMs).toBeLessThanOrEqual(tookMs + ROUNDING_MS);
    expect(receipt.parts.map(({ step }) => step)).toEqual(expect.arrayContaining(['slot', 'opening', 'running']));
    expect(receipt.firstOutputMs).toBeGreaterThanOrEqual(200);
    const begunMs = Date.parse(receipt.storedAt) - Date.parse(receipt.startedAt ?? '');
    expect(receipt.firstOutputMs).toBeLessThanOrEqual(begunMs + ROUNDING_MS);

    const shown = await explain(command.id);
    expect(shown).toMatch(/^\S+ ended as success, [\d.]+ m?s after it was accepted at \S+Z\.\n\nfor a slot +#+/);
    expect(shown).toMatch(/\nIts session waited [\d.]+ m?s for a slot of a host\.\n/);
    expect(shown).toMatch(
      /\nIts shell was opened for it in [^\n]+, cold: no pool of its host has its image, limits and network\.\n/,
    );
    expect(
      Math.max(
        ...shown
          .split('\n')
          .slice(2, 6)
          .map(({ length }) => length),
      ),
    ).toBeLessThanOrEqual(80);
    const { stdout } = await cli.text(['explain', '--json', command.id]);
    expect(JSON.parse(stdout)).toEqual({
      ...{ commandId: command.id, sessionId: session.id, state: 'ended', outcome: 'success' },
      receipt: JSON.parse(JSON.stringify(receipt)),
      usage: result.usage,
      because: expect.arrayContaining([expect.stringContaining('for a slot of a host')]),
    });
  });

  test('names the slot that a cancelled command never had', async () => {
    await using holder = await stack.fleet.session('holds-on');
    await holder.run('true');
    await using session = await stack.fleet.session('gives-up');
    const command = await session.submit('echo never');
    await until(
      () => session.info(),
      ({ position }) => position === 1,
    );
    await command.cancel();
    const receipt = receiptOf(await command.result());
    expect(receipt.startedAt).toBeUndefined();
    expect(receipt.parts.map(({ step }) => step)).toContain('slot');
    expect(await explain(command.id)).toContain('\nIt was never started.\n');
  });

  test('names the earlier command of its session', async () => {
    await using session = await stack.fleet.session('one-at-a-time');
    await session.run('true');
    const [first, second] = await Promise.all([session.run('sleep 0.6'), session.run('echo next')]);
    const receipt = receiptOf(second);
    expect(msOf(receipt, 'earlier')).toBeGreaterThanOrEqual(550);
    expect(msOf(receipt, 'earlier')).toBeLessThanOrEqual(receiptOf(first).totalMs + ROUNDING_MS);
    expect(await explain(second.commandId)).toContain(`; ${first.commandId} was the last of them.\n`);
    const { exitCode, shown } = await cli.atTerminal(['explain', second.commandId], async () => {});
    expect(exitCode).toBe(0);
    expect(shown).toMatch(/earlier commands .*█{5,}/);
  });

  test('names the person who was asked', async () => {
    await using session = await stack.fleet.session('asks', { approval: 'unless-trusted' });
    const command = await session.submit('touch made');
    const [question] = await until(
      () => stack.fleet.approvals.list({ sessionId: 'asks' }),
      ({ length }) => length > 0,
    );
    await until(
      () => session.info(),
      ({ heldCommandId }) => heldCommandId === command.id,
    );
    const asked = performance.now();
    expect(await explain('asks')).toMatch(
      `${command.id} waits for an approval; \`shellfleet approvals watch\` shows why, and how to answer.\nThe question ${question?.id}, until `,
    );
    const heldMs = performance.now() - asked;
    await stack.fleet.approvals.approve(question?.id ?? '', { answeredBy: 'ada' });
    const receipt = receiptOf(await command.result());
    expect(msOf(receipt, 'approval')).toBeGreaterThanOrEqual(Math.floor(heldMs));
    expect(await explain(command.id)).toMatch(/\nA person was asked about it for [^\n]+, and ada approved it\.\n/);
  });

  test('names the attempt that was lost before it ran again', async () => {
    await using inspect = inspectFleet(stack);
    await using session = await stack.fleet.session('runs-again');
    const command = await session.submit('echo begun; sleep 1.5', { retry: 'idempotent' });
    for await (const _chunk of command.output()) break;
    await (await inspect.container('runs-again')).remove({ force: true });
    const result = await command.result();
    expect(result).toMatchObject({ outcome: 'success', attempts: 2 });
    const receipt = receiptOf(result);
    expect(msOf(receipt, 'attempt')).toBeGreaterThan(0);
    expect(msOf(receipt, 'opening')).toBeGreaterThan(0);
    expect(await explain(command.id)).toContain('went into an earlier one');
  });

  test('says so when a run was lost with its worker and sandbox', async () => {
    await using inspect = inspectFleet(stack);
    await using session = await stack.fleet.session('is-lost');
    const command = await session.submit('echo begun; sleep 4321');
    for await (const _chunk of command.output()) break;
    await stack.workers[0]?.kill();
    const down = performance.now();
    await (await inspect.container('is-lost')).remove({ force: true });
    const downMs = performance.now() - down;
    await stack.workers[0]?.start();
    const result = await command.result();
    expect(result).toMatchObject({ outcome: 'lost', reason: 'container-removed' });
    const receipt = receiptOf(result);
    expect(msOf(receipt, 'unknown')).toBeGreaterThanOrEqual(Math.floor(downMs));
    expect(receipt.parts.at(-1)?.step).toBe('unknown');
    expect(await explain(command.id)).toMatch(/how long of that it ran is not known; its shell was lost: /);
  });

  test('goes on while its worker is replaced', async () => {
    await using session = await stack.fleet.session('is-adopted');
    const command = await session.submit('echo begun; sleep 1; echo over');
    for await (const _chunk of command.output()) break;
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    const result = await command.result();
    expect(msOf(receiptOf(result), 'running')).toBeGreaterThanOrEqual(1_000);
    expect(result.receipt?.firstOutputMs).toBeUndefined();
    expect(await explain(command.id)).toContain('; its worker was replaced meanwhile, and it went on.\n');
  });
});

/** Keeps the shell itself busy until it has used 0.5 s of processor time. */
const BURN = `used() { read -ra stat </proc/$$/stat; echo $((stat[13] + stat[14])); }; from=$(used)
  until read -ra stat </proc/$$/stat && (( stat[13] + stat[14] >= from + 50 )); do :; done`;
const TOUCH_100_MIB = 'head -c 104857600 /dev/zero | tail -c 104857600 | wc -c';

describe('the usage of a command', () => {
  test('is the processor time and the highest memory of its sandbox', async () => {
    await using session = await stack.fleet.session('uses');
    const usageOf = async (script: string) => {
      const { outcome, usage, commandId } = await session.run(script);
      expect(outcome).toBe('success');
      if (usage === undefined) throw new Error('the kernel does not count for a container');
      return { ...usage, commandId };
    };
    const [idle, busy, large, after] = [
      await usageOf('sleep 0.5'),
      await usageOf(BURN),
      await usageOf(TOUCH_100_MIB),
      await usageOf('true'),
    ];
    expect(idle.cpuMs).toBeLessThan(100);
    expect(busy.cpuMs).toBeGreaterThanOrEqual(490);
    expect(busy.peakMemoryBytes).toBeLessThan(50 * MIB);
    expect(large.peakMemoryBytes).toBeGreaterThanOrEqual(100 * MIB);
    // The peak is that of the sandbox since its start.
    expect(after.peakMemoryBytes).toBeGreaterThanOrEqual(large.peakMemoryBytes);
    expect(after.cpuMs).toBeLessThan(100);
    expect(await explain(large.commandId)).toMatch(
      /\nMeanwhile its sandbox used [\d.]+ m?s of processor time, and its highest memory up to its end was 1[\d.]+ MB\.\n/,
    );
  });

  test('counts what earlier commands left running, and is absent for a command that never ran', async () => {
    await using session = await stack.fleet.session('uses-behind');
    await session.run('while :; do :; done & spinner=$!');
    const [meanwhile, unstarted] = await Promise.all([
      session.run('sleep 0.5; kill $spinner'),
      session.run('true', { startDeadlineMs: 100 }),
    ]);
    expect(meanwhile.usage?.cpuMs).toBeGreaterThanOrEqual(100);
    expect(unstarted).toMatchObject({ outcome: 'timeout', reason: 'not-started' });
    expect(unstarted.usage).toBeUndefined();
  });
});
