import { readFile } from 'node:fs/promises';
import type { Command, OutputChunk, Session, SessionEvent } from '@shellfleet/client';
import { sessionKeys } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingInRedis } from '../support/everything-in-redis.ts';
import { expectedResult } from '../support/expected-result.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { findForms, PLANTED } from '../support/planted-secret.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

async function chunksOf(chunks: AsyncIterable<OutputChunk>): Promise<OutputChunk[]> {
  const all: OutputChunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

const textOf = (chunks: OutputChunk[], stream: 'stdout' | 'stderr' = 'stdout') =>
  chunks
    .filter((chunk) => chunk.stream === stream)
    .map(({ text }) => text)
    .join('');
const missing = (chunks: OutputChunk[]) => chunks.reduce((sum, { omittedBytes = 0 }) => sum + omittedBytes, 0);
const carried = (chunks: OutputChunk[]) => chunks.reduce((sum, { data }) => sum + data.byteLength, 0);
const readNow = (command: Command) => chunksOf(command.output({ follow: false }));

describe.each(['socket', 'attach'] as const)('Late output over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  test('what a background process prints after its command has ended is read as output of that command, and never of the next', async () => {
    const session = await stack.fleet.session('late');
    const script = 'echo own; { until [ -e go ]; do sleep 0.02; done; echo late; echo "late error" >&2; } &';
    const command = await session.submit(script);
    const live = chunksOf(command.output());
    const result = await command.result();
    expect(result).toEqual(expectedResult('late', { stdout: 'own\n' }));
    expect(textOf(await live)).toBe('own\n');
    const next = await session.submit('touch go; wait; sleep 0.3; echo next');
    expect(await next.result()).toEqual(expectedResult('late', { stdout: 'next\n' }));
    const both = (chunks: OutputChunk[]) => textOf(chunks) !== 'own\n' && textOf(chunks, 'stderr') !== '';
    const later = await until(() => readNow(command), both);
    expect(textOf(later)).toBe('own\nlate\n');
    expect(textOf(later, 'stderr')).toBe('late error\n');
    expect(missing(later)).toBe(0);
    expect(later.map(({ seq }) => seq)).toEqual(later.map((_chunk, index) => index));
    expect(textOf(await readNow(next))).toBe('next\n');
    // A reader that goes on behind the command's own output is given the rest.
    const rest = await chunksOf(command.output({ after: later[0]?.id as string }));
    expect(rest).toEqual(later.slice(1));
    // What the Result says stands.
    expect(await command.result()).toEqual(result);
  });

  test('it comes live to whoever follows the session, behind the end of its command', async () => {
    const session = await stack.fleet.session('followed');
    const events: SessionEvent[] = [];
    const following = (async () => {
      for await (const event of session.events()) events.push(event);
    })();
    const command = await session.submit('echo own; { until [ -e go ]; do sleep 0.02; done; echo late; } &');
    await command.result();
    await session.run('touch go');
    const isLate = ({ type, data }: SessionEvent) => type === 'command.output' && (data as OutputChunk).seq === 1;
    await until(
      () => events,
      (seen) => seen.some(isLate),
    );
    await session.close();
    await following;
    const own = events.filter(({ commandId }) => commandId === command.id);
    expect(own.map(({ type }) => type)).toEqual([
      'command.accepted',
      'command.started',
      'command.output',
      'command.completed',
      'command.output',
    ]);
    expect(own[4]?.data).toEqual({
      id: own[4]?.id,
      stream: 'stdout',
      seq: 1,
      data: Buffer.from('late\n'),
      text: 'late\n',
    });
    await using inspector = inspectFleet(stack);
    expect(await inspector.broken('followed', [command.id])).toEqual([]);
  });

  test('what came shortly before the close of the session is there after it', async () => {
    const session = await stack.fleet.session('last-words');
    const command = await session.submit('echo own; { until [ -e go ]; do sleep 0.02; done; echo late; } &');
    await command.result();
    await session.run('touch go; wait');
    await session.close();
    expect(textOf(await readNow(command))).toBe('own\nlate\n');
  });

  test('it takes what the command has left of its budget; the rest is counted', async () => {
    const session = await stack.fleet.session('budget', { output: { streamBytes: 10_000 } });
    const command = await session.submit(
      'head -c 4000 /dev/zero; { until [ -e go ]; do sleep 0.02; done; head -c 2000 /dev/zero; head -c 100000 /dev/zero; } &',
    );
    expect((await command.result()).totals.stdoutBytes).toBe(4_000);
    await session.run('touch go; wait');
    const chunks = await until(
      () => readNow(command),
      (all) => carried(all) + missing(all) === 106_000,
    );
    expect(carried(chunks)).toBeGreaterThan(4_000);
    expect(carried(chunks)).toBeLessThanOrEqual(10_000);
  });
});

test('late output is redacted like any other, wherever it is cut', async () => {
  await using stack = await startFleet();
  await using inspector = inspectFleet(stack);
  const session = await stack.fleet.session('redacted', {
    secrets: { TOKEN: PLANTED },
    redaction: [{ type: 'email', strategy: 'redact' }],
  });
  const write =
    'printf %s "$TOKEN" | fold -w 5 | while read -r part || [ -n "$part" ]; do printf %s "$part"; sleep 0.15; done';
  const script = `echo own; { until [ -e go ]; do sleep 0.02; done; printf "late "; ${write}; echo " by alice@example.com"; } &`;
  const command = await session.submit(script);
  expect((await command.result()).stdout).toBe('own\n');
  await session.run('touch go');
  const chunks = await until(
    () => readNow(command),
    (all) => textOf(all).includes('by'),
  );
  expect(textOf(chunks)).toBe('own\nlate [REDACTED_SECRET] by [REDACTED_EMAIL]\n');
  const stored = Buffer.from(await everythingInRedis(inspector.redis, stack.namespace), 'latin1');
  expect(findForms(PLANTED, stored)).toEqual([]);
});

test('of a command whose output was withheld nothing is shown later either', async () => {
  await using stack = await startFleet();
  const session = await stack.fleet.session('withheld', { redaction: [{ type: 'email', strategy: 'block' }] });
  const blocked = await session.submit(
    'echo alice@example.com; { until [ -e go ]; do sleep 0.02; done; echo also secret; } &',
  );
  expect((await blocked.result()).outcome).toBe('blocked');
  const later = await session.submit(
    'echo fine; { until [ -e go ]; do sleep 0.02; done; echo before; echo bob@example.com; echo behind; } &',
  );
  expect((await later.result()).outcome).toBe('success');
  await session.run('touch go; wait; sleep 0.3');
  await session.close();
  expect(textOf(await readNow(blocked))).toBe('');
  expect(textOf(await readNow(later))).toMatch(/^fine\n(before\n)?$/);
});

test('a flood from the background slows no command, here or elsewhere, and fills nothing', async () => {
  await using stack = await startFleet();
  await using inspector = inspectFleet(stack);
  const streamBytes = 1_000_000;
  const flooded = await stack.fleet.session('flooded', { output: { streamBytes } });
  const other = await stack.fleet.session('quiet');
  await Promise.all([flooded.run('true'), other.run('true')]);
  const quiet = await bestP95(other);
  const before = await highWaterMark(stack);
  const command = await flooded.submit(
    'for i in 1 2 3 4; do (until [ -e go ]; do sleep 0.02; done; exec yes flood) & done',
  );
  await command.result();
  await flooded.run('touch go');
  // The flood is held back at 1 MiB/s: over the budget soon, and it goes on.
  await until(
    () => readNow(command),
    (chunks) => carried(chunks) > streamBytes - 100_000,
  );
  const [elsewhere, here] = [await bestP95(other), await bestP95(flooded)];
  const [alone, beside, within] = [quiet, elsewhere, here].map((ms) => ms.toFixed(1));
  console.info(
    `p95 of \`true\`: ${alone} ms alone, ${beside} ms beside a background flood, ${within} ms in its session`,
  );
  expect(elsewhere).toBeLessThan(2 * quiet + 20);
  expect(here).toBeLessThan(2 * quiet + 20);
  expect(carried(await readNow(command))).toBeLessThanOrEqual(streamBytes);
  const { stream } = sessionKeys(stack.namespace, 'default', 'flooded');
  const size = await inspector.redis.memory('USAGE', stream, 'SAMPLES', 0);
  expect(size).toBeLessThan(1.5 * streamBytes);
  expect((await highWaterMark(stack)) - before).toBeLessThan(64 << 20);
  await flooded.run('kill %1 %2 %3 %4; wait', { timeoutMs: 10_000 });
  const chunks = await until(
    () => readNow(command),
    (all) => missing(all) > 0,
  );
  expect(carried(chunks) + missing(chunks)).toBeGreaterThan(streamBytes);
});

/** The best of three rounds: what else the machine does meanwhile is not the flood's doing. */
async function bestP95(session: Session): Promise<number> {
  const rounds = [await times(session, 60), await times(session, 60), await times(session, 60)];
  return Math.min(...rounds.map(p95));
}

/** How long so many commands take, one after the other, ms. */
async function times(session: Session, count: number): Promise<number[]> {
  const all: number[] = [];
  for (let index = 0; index < count; index += 1) {
    const from = performance.now();
    await session.run('true');
    all.push(performance.now() - from);
  }
  return all;
}

const p95 = (all: number[]) => all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.95)] as number;

async function highWaterMark({ workers }: TestFleet): Promise<number> {
  const status = await readFile(`/proc/${workers[0]?.pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

test('late output goes on where it was when the worker is killed and comes back: what is missing is counted', async () => {
  await using stack = await startFleet();
  const session = await stack.fleet.session('adopted');
  const command = await session.submit(
    'i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo "line $i"; sleep 0.01; done & echo $!',
  );
  await command.result();
  await until(
    () => readNow(command),
    (chunks) => textOf(chunks).includes('line 20\n'),
  );
  await stack.workers[0]?.kill();
  await stack.workers[0]?.start();
  const all = await until(
    () => readNow(command),
    (chunks) => textOf(chunks).includes('line 400\n'),
  );
  const pid = /^\d+\n/m.exec((await command.result()).stdout)?.[0] ?? '';
  expect(carried(all) + missing(all)).toBe(pid.length + bytesOfLines(400));
  await using inspector = inspectFleet(stack);
  expect(await inspector.broken('adopted', [command.id])).toEqual([]);
});

function bytesOfLines(count: number): number {
  return Array.from({ length: count }, (_, index) => `line ${index + 1}\n`.length).reduce((sum, one) => sum + one, 0);
}
