// A terminal in a session's sandbox, from another process, through Redis.
import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { everythingInRedis } from '../support/everything-in-redis.ts';
import { type FleetInspector, inspectFleet } from '../support/inspect-fleet.ts';
import { SessionTerminal } from '../support/session-terminal.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

describe.each(['socket', 'attach'] as const)('a terminal over %s', (transport) => {
  let stack: TestFleet;
  let inspect: FleetInspector;
  beforeAll(async () => {
    stack = await startFleet({ transport });
    inspect = inspectFleet(stack);
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
    await inspect[Symbol.asyncDispose]();
  });

  test('opens the sandbox with the session’s variables and directory, in the requested size', async () => {
    const session = await stack.fleet.session('fresh', { env: { GIVEN: 'to the session' }, cwd: '/tmp' });
    await using terminal = await session.attach({ rows: 31, cols: 97 });
    const person = new SessionTerminal(terminal);
    await person.type('stty size; pwd; echo "<$GIVEN>"\n');
    await person.sees('31 97');
    await person.sees('/tmp');
    await person.sees('<to the session>');
    terminal.resize(40, 120);
    await person.type('stty size\n');
    await person.sees('40 120');
    expect((await session.run('echo the shell is another')).stdout).toBe('the shell is another\n');
  });

  test('ends with the exit code of its shell, after all its output', async () => {
    const session = await stack.fleet.session('ends');
    const terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.type('seq 1 30000 | tr "\\n" " "; exit 42\n');
    expect(await terminal.ended).toEqual({ reason: 'exited', exitCode: 42, signal: null });
    await person.sees(' 29999 30000 ');
    await terminal.close();
  });

  test('leaves nothing at a signal that outlives it', async () => {
    const session = await stack.fleet.session('signal');
    const { signal } = new AbortController();
    const terminal = await session.attach({ signal });
    expect(getEventListeners(signal, 'abort').length).toBeGreaterThan(0);
    await terminal.close();
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });

  test('continues while a command runs, and survives that command’s timeout', async () => {
    const session = await stack.fleet.session('beside');
    await session.run('true');
    const running = session.run('sleep 1000', { timeoutMs: 1_000, killGraceMs: 500 });
    await using terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.type('python3 -q\n');
    await person.sees('>>> ');
    expect(await running).toMatchObject({ outcome: 'timeout', shell: { state: 'kept' } });
    await person.type('print(6 * 7 * 1000)\n');
    await person.sees('42000');
    expect((await session.info()).background).toEqual([]);
  });

  test('shows neither the session’s secrets nor what a rule redacts', async () => {
    const session = await stack.fleet.session('redacted', {
      secrets: { API_KEY: 'correct-horse-battery' },
      redaction: [{ type: 'email', strategy: 'redact' }],
    });
    await using terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.type(
      'echo "<$API_KEY> $(printf %s "$API_KEY" | base64) ${#API_KEY}"; echo alice@example.com; echo al""l\n',
    );
    await person.sees('<[REDACTED_SECRET]> [REDACTED_SECRET] 21\r\n[REDACTED_EMAIL]\r\nall');
    // The terminal hides the secret also when two writes print it.
    await person.type('printf "<correct-"; sleep 0.5; printf "horse-battery>"\n');
    await person.sees('<[REDACTED_SECRET]>');
  });

  test('is closed when a rule blocks its output, and the session goes on', async () => {
    const session = await stack.fleet.session('blocked', { redaction: [{ type: 'credit_card', strategy: 'block' }] });
    const terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    await person.type('echo 4111""1111""1111""1111; echo never\n');
    expect(await terminal.ended).toEqual({ reason: 'blocked', exitCode: null, signal: null });
    expect(person.shown).not.toMatch(/4111111111111111|\nnever/);
    expect((await session.run('echo on')).stdout).toBe('on\n');
  });

  test('applies backpressure when its user does not read, and loses nothing', async () => {
    const session = await stack.fleet.session('slow');
    const terminal = await session.attach();
    await terminal.write('stty -echo -opost; PS1=; echo sta""rt; seq 1 500000; echo al""l\n');
    // 3.4 MB are more than all buffers on the way can hold.
    const [key = ''] = await until(
      () => inspect.redis.keys(`${stack.keyspace}:{default:slow}:terminal:*:output`),
      (keys) => keys.length === 1,
    );
    await session.run('sleep 1; pgrep -x seq');
    expect((await session.run('pgrep -x seq')).outcome).toBe('success');
    expect(await inspect.redis.xlen(key)).toBeLessThanOrEqual(64);
    let seen = '';
    for await (const bytes of terminal.output()) {
      seen += Buffer.from(bytes).toString();
      if (seen.includes('\nall\n')) break;
    }
    const numbers = seen.slice(seen.indexOf('start\n') + 6, seen.indexOf('all\n'));
    expect(numbers).toBe(Array.from({ length: 500_000 }, (_, index) => `${index + 1}\n`).join(''));
    await terminal.close();
  });

  test('stores neither input nor output in Redis in clear', async () => {
    const session = await stack.fleet.session('sealed');
    await using terminal = await session.attach();
    const person = new SessionTerminal(terminal);
    const secret = 'hunter2-hunter2';
    await person.type(`stty -echo; read -r password; echo "length $((\${#password}))"; echo "$password"\n`);
    await person.type(`${secret}\n`);
    await person.sees('length 15');
    await person.sees(secret);
    const stored = await everythingInRedis(inspect.redis, stack.namespace);
    expect(stored).toContain('terminal:');
    expect(stored).not.toContain('hunter2');
  });
});
