import type { OutputChunk } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingInRedis } from '../support/everything-in-redis.ts';
import { expectedResult } from '../support/expected-result.ts';
import { FleetCli } from '../support/fleet-cli.ts';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 20 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

const SPEC = { redaction: [{ type: 'email', strategy: 'block' as const }] };
const BLOCKED = {
  outcome: 'blocked' as const,
  redactions: { email: 1 },
  blocked: { type: 'email', reason: 'matched' as const },
};

describe('output that a rule blocks', () => {
  // S1-46
  test('is withheld on both streams from the match on, while the command goes on', async () => {
    const session = await stack.fleet.session('blocks', SPEC);
    const chunks: OutputChunk[] = [];
    const script = `echo before; sleep 0.2; echo alice@example.com; echo more; echo err >&2; touch /tmp/done; sh -c 'exit 3'`;
    const command = await session.submit(script, { onOutput: (chunk) => chunks.push(chunk) });
    expect(await command.result()).toEqual(
      expectedResult('blocks', { ...BLOCKED, exitCode: 3, totals: expect.any(Object) as never }),
    );
    expect(chunks.map(({ text }) => text).join('')).toBe('before\n');
    expect(chunks.some(({ omittedBytes = 0 }) => omittedBytes > 0)).toBe(true);
    let log = '';
    for await (const { text } of command.log()) log += text;
    expect(log).toBe('before\n');
    expect((await session.run('ls /tmp/done')).stdout).toBe('/tmp/done\n');
  });

  test('fills no buffer when a command prints 20 MB after the match', async () => {
    const session = await stack.fleet.session('much', SPEC);
    const result = await session.run('echo alice@example.com; yes | head -c 20000000; echo end >&2');
    expect(result).toMatchObject({ ...BLOCKED, exitCode: 0, stdout: '', stderr: '', output: '' });
  });

  test('is withheld when a rule exceeds its time, and the Result names the rule', async () => {
    // The pattern keeps nine hundred states at every byte.
    const redaction = [{ type: 'slow', strategy: 'redact' as const, pattern: '([ab]{0,30}){0,30}NEVER' }];
    const session = await stack.fleet.session('too-slow', { redaction });
    const result = await session.run('head -c 4000000 /dev/zero | tr "\\0" a; echo; echo end >&2', {
      timeoutMs: 60_000,
    });
    expect(result).toEqual(
      expectedResult('too-slow', {
        outcome: 'blocked',
        totals: expect.any(Object) as never,
        blocked: { type: 'slow', reason: 'too-slow' },
      }),
    );
    expect(await session.run('echo on')).toEqual(expectedResult('too-slow', { stdout: 'on\n' }));
  });

  test('does not change the outcome timeout of a stopped command', async () => {
    const session = await stack.fleet.session('stopped', SPEC);
    expect(await session.run('echo alice@example.com; sleep 60', { timeoutMs: 500 })).toMatchObject({
      outcome: 'timeout',
      reason: 'wall',
      output: '',
      blocked: BLOCKED.blocked,
    });
  });

  test('stays withheld after adoption, with its match counted once', async () => {
    await using inspect = inspectFleet(stack);
    const session = await stack.fleet.session('adopted', SPEC);
    const command = await session.submit('echo bob@example.com; sleep 1; echo carol@example.com');
    await until(
      () => everythingInRedis(inspect.redis, stack.namespace),
      (all) => all.includes('"blocked":{"type":"email"'),
    );
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    expect(await command.result()).toMatchObject({ ...BLOCKED, exitCode: 0, output: '' });
    const everything = await everythingInRedis(inspect.redis, stack.namespace);
    for (const name of ['alice', 'bob', 'carol']) expect(everything).not.toContain(`${name}@example.com`);
  });

  test.each(['the same worker', 'the next one'])(
    'stays withheld as late output behind a match, for %s',
    async (who) => {
      const session = await stack.fleet.session(`late-${who === 'the next one'}`, SPEC);
      const untilThere = (file: string) => `until [ -e ${file} ]; do sleep 0.02; done`;
      const command = await session.submit(
        `{ ${untilThere('go')}; echo alice@example.com; exec >&-; ${untilThere('on')}; echo more >&2; touch said; } &`,
      );
      expect(await command.result()).toMatchObject({ outcome: 'success' });
      const readNow = async () => {
        const chunks: OutputChunk[] = [];
        for await (const chunk of command.output({ follow: false })) chunks.push(chunk);
        return chunks;
      };
      const omitted = (chunks: OutputChunk[]) => chunks.reduce((sum, { omittedBytes = 0 }) => sum + omittedBytes, 0);
      await session.run('touch go');
      const matched = omitted(await until(readNow, (chunks) => omitted(chunks) > 0));
      if (who === 'the next one') {
        await stack.workers[0]?.kill();
        await stack.workers[0]?.start();
      }
      await session.run(`touch on; ${untilThere('said')}`);
      const chunks = await until(readNow, (read) => omitted(read) > matched || read.some(({ text }) => text !== ''));
      expect(chunks.map(({ text }) => text).join('')).toBe('');
    },
  );

  test('makes the command line exit with 126 and print the reason', async () => {
    const session = await stack.fleet.session('line', SPEC);
    await session.run('true');
    expect(await new FleetCli(stack).text(['exec', 'line', '--', 'echo alice@example.com'])).toEqual({
      exitCode: 126,
      stdout: '',
      stderr: expect.stringContaining('Output blocked: detected email.\n') as string,
    });
  });
});

describe('redaction rules', () => {
  test('replace in their order, and hash one value alike in every session', async () => {
    const redaction = [
      { type: 'email', strategy: 'hash' as const },
      { type: 'credit_card', strategy: 'mask' as const },
      { type: 'ticket', strategy: 'redact' as const, pattern: 'T-[0-9]{4}' },
    ];
    const script = 'echo "alice@example.com 4111-1111-1111-1111 T-1234 T-9999"';
    const results = await Promise.all(
      ['one', 'two'].map(async (id) => (await stack.fleet.session(id, { redaction })).run(script)),
    );
    for (const { stdout, redactions } of results) {
      expect(stdout).toMatch(
        /^<email_hash:[0-9a-f]{8}> \*{4}-\*{4}-\*{4}-1111 \[REDACTED_TICKET\] \[REDACTED_TICKET\]\n$/,
      );
      expect(redactions).toEqual({ email: 1, credit_card: 1, ticket: 2 });
    }
    expect(results[0]?.stdout).toBe(results[1]?.stdout);
    const stranger = await stack.connect({ tenant: 'other' });
    const theirs = await (await stranger.session('one', { redaction })).run(script);
    expect(theirs.stdout).not.toBe(results[0]?.stdout);
  });

  // S1-32
  test('are refused before anything is sent when they can never work', async () => {
    for (const redaction of [
      [{ type: 'unheard_of', strategy: 'redact' }],
      [{ type: 'own', strategy: 'mask', pattern: '(' }],
    ])
      await expect(stack.fleet.session('never', { redaction: redaction as never })).rejects.toMatchObject({
        code: 'SESSION_SPEC_INVALID',
      });
    await expect(stack.fleet.session('never', { env: { A: '1' }, secrets: { A: '2' } })).rejects.toMatchObject({
      code: 'SESSION_SPEC_INVALID',
      message: expect.stringContaining('secrets.A: is in env as well'),
    });
  });

  // S1-49
  test('redact and count the output of an adopted command exactly once', async () => {
    const session = await stack.fleet.session('once', {
      secrets: { TOKEN: 'correct-horse-battery' },
      output: { streamBytes: 300_000 },
    });
    const script = `i=0; while [ $i -lt 40000 ]; do echo "$i $TOKEN"; i=$((i + 1)); done`;
    await session.run('true');
    const command = await session.submit(script, { timeoutMs: 60_000 });
    let bytes = 0;
    for await (const { data } of command.output()) {
      bytes += data.byteLength;
      if (bytes > 100_000) break;
    }
    for (let kill = 0; kill < 2; kill += 1) {
      await stack.workers[0]?.kill();
      await stack.workers[0]?.kill();
      await stack.workers[0]?.start();
    }
    expect(await command.result()).toMatchObject({ outcome: 'success', redactions: { secret: 40_000 } });
    let text = '';
    for await (const chunk of command.log()) text += chunk.text;
    expect(text).toBe(Array.from({ length: 40_000 }, (_, index) => `${index} [REDACTED_SECRET]\n`).join(''));
  });
});
