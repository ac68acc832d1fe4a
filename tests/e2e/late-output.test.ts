import type { Command, OutputChunk, SessionEvent } from '@shellfleet/client';
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

describe.each(['socket', 'attach'] as const)('late output over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(() => stack?.[Symbol.asyncDispose]());

  // S1-15
  test('belongs to the command that started its background process, and never to the next', async () => {
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
    // A reader that resumes after the chunk `own` receives the late output.
    const rest = await chunksOf(command.output({ after: later[0]?.id as string }));
    expect(rest).toEqual(later.slice(1));
    // The Result does not change.
    expect(await command.result()).toEqual(result);
  });

  test('reaches live readers of the session after the end of its command', async () => {
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

  test('is kept when it was printed shortly before the session’s close', async () => {
    const session = await stack.fleet.session('last-words');
    const command = await session.submit('echo own; { until [ -e go ]; do sleep 0.02; done; echo late; } &');
    await command.result();
    await session.run('touch go; wait');
    await session.close();
    expect(textOf(await readNow(command))).toBe('own\nlate\n');
  });

  // S1-21
  test('uses the rest of the command’s budget, and is counted beyond it', async () => {
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

describe('late output', () => {
  test('is redacted like any other, wherever it is cut', async () => {
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

  test('is withheld when the output of its command was withheld', async () => {
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

  test('continues after its worker was killed and started again, with missing bytes counted', async () => {
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
});

function bytesOfLines(count: number): number {
  return Array.from({ length: count }, (_, index) => `line ${index + 1}\n`.length).reduce((sum, one) => sum + one, 0);
}
