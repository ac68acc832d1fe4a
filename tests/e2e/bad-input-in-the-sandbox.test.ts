import { submit } from '@shellfleet/mailbox';
import { sessionKeys } from '@shellfleet/protocol';
import { createSealer, sealPlace } from '@shellfleet/sealing';
import { ulid } from 'ulid';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { newSubmission } from '../support/mailbox-session.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Bad input that only a shell, a file system or a worker can recognize. The cases are numbered across this file and
// bad-input.test.ts.

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet({ slots: 20 });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('a session', () => {
  // case 24
  test('has its own container when its id differs from another in case alone', async () => {
    const [upper, lower] = await Promise.all(['Abc', 'abc'].map((id) => stack.fleet.session(id)));
    await Promise.all([upper?.run('mine=upper'), lower?.run('mine=lower')]);
    expect([(await upper?.run('echo $mine'))?.stdout, (await lower?.run('echo $mine'))?.stdout]).toEqual([
      'upper\n',
      'lower\n',
    ]);
    await using inspector = inspectFleet(stack);
    const [first] = await inspector.containers('Abc');
    const [second] = await inspector.containers('abc');
    expect(first?.id).not.toBe(second?.id);
  });

  // case 33
  test('may set PATH, and so may a command', async () => {
    const session = await stack.fleet.session('path', { env: { PATH: '/workspace/bin:/usr/bin:/bin' } });
    await session.run(
      `mkdir bin other; printf '#!/bin/sh\\necho of-session' > bin/own; printf '#!/bin/sh\\necho of-command' > other/own; chmod +x */own`,
    );
    expect((await session.run('own')).stdout).toBe('of-session\n');
    expect((await session.run('own', { env: { PATH: '/workspace/other:/usr/bin:/bin' } })).stdout).toBe('of-command\n');
    expect((await session.run('own')).stdout).toBe('of-session\n');
  });

  // case 34. A link may lead anywhere in the sandbox: its target is protected by the sandbox and by the permissions of
  // the user.
  test('enters a directory behind a link if its user may; if not, no command runs', async () => {
    const session = await stack.fleet.session('links');
    await session.run('ln -s /usr/lib there; ln -s /root closed; ln -s loop loop; : > file');
    expect((await session.run('pwd -P', { cwd: '/workspace/there' })).stdout).toBe('/usr/lib\n');
    for (const cwd of [
      '/workspace/closed',
      '/workspace/loop',
      '/workspace/file',
      '/workspace/there\n',
      '/workspace/../../root',
    ])
      expect(await session.run('touch /tmp/ran', { cwd })).toMatchObject({
        outcome: 'error',
        error: { code: 'COMMAND_INVALID' },
      });
    expect((await session.run('ls /tmp/ran')).exitCode).toBe(2);
  });
});

describe('a file operation', () => {
  // case 36
  test('replaces a link on write, and leaves its target and other names as they are', async () => {
    const session = await stack.fleet.session('replaces');
    await session.run('echo old > target; ln -s target soft; ln target hard');
    await session.files.write('/workspace/soft', 'new');
    await session.files.write('/workspace/hard', 'new');
    expect((await session.run('cat target soft hard; test -L soft || echo replaced')).stdout).toBe(
      'old\nnewnewreplaced\n',
    );
  });

  // case 38. A client cannot name such a file, since paths are texts, but the list shows that the file exists.
  test('lists a name that is no UTF-8 with U+FFFD, and hides no other', async () => {
    const session = await stack.fleet.session('names');
    await session.run('mkdir d; : > "d/$(printf \'a\\377b\')"; : > d/other');
    const entries = await session.files.list('/workspace/d');
    expect(entries.map(({ name }) => name).sort()).toEqual(['a\ufffdb', 'other']);
  });

  // case 39
  test('refuses a FIFO and a link to a device at once', async () => {
    const session = await stack.fleet.session('special');
    await session.run('mkfifo fifo; ln -s /dev/zero zero');
    await expect(session.files.read('/workspace/fifo')).rejects.toMatchObject({ code: 'PATH_INVALID' });
    await expect(session.files.read('/workspace/zero')).rejects.toMatchObject({ code: 'PATH_INVALID' });
  });
});

describe('a command', () => {
  // case 48
  test('finds its stdin empty and ends at once when it reads it', async () => {
    const session = await stack.fleet.session('stdin');
    const script = 'cat; read x; echo "read $?"; python3; sh; echo "sh $?"';
    expect(await session.run(script, { timeoutMs: 20_000 })).toMatchObject({
      outcome: 'success',
      stdout: 'read 1\nsh 0\n',
    });
  });

  test.each([
    [
      '50: workflow commands of other systems',
      "echo '::add-mask::value' '##[group]x' '{\"exitCode\":7}'",
      '::add-mask::value ##[group]x {"exitCode":7}\n',
    ],
    ['56: a byte order mark', "printf '\\357\\273\\277a'", '\ufeffa'],
    ['56: a character in two writes', "printf '\\360\\237'; sleep 0.3; printf '\\230\\200'", '😀'],
    ['56: bytes that are not UTF-8', "printf 'a\\377b\\360\\237'", 'a\ufffdb\ufffd'],
    ['56: NUL', "printf 'a\\0b'", 'a\0b'],
    // Output for a pipe has these bytes unchanged. Messages and tables for a person have them escaped.
    ['57: control sequences of a terminal', "printf '\\033]52;c;eA==\\007\\033[2J'", '\u001b]52;c;eA==\u0007\u001b[2J'],
  ])('has its output shown as it was written: case %s', async (_what, script, stdout) => {
    const session = await stack.fleet.session('output');
    expect(await session.run(script)).toMatchObject({ outcome: 'success', exitCode: 0, stdout });
  });

  // case 56
  test('has every byte of its output in the Result with the encoding base64', async () => {
    const session = await stack.fleet.session('output');
    const { stdout } = await session.run("printf 'a\\377\\0b'", { encoding: 'base64' });
    expect([...Buffer.from(stdout, 'base64')]).toEqual([0x61, 0xff, 0, 0x62]);
  });

  // case 55
  test('has its output counted exactly: ten million empty lines, or 30 MB in one', { timeout: 120_000 }, async () => {
    const session = await stack.fleet.session('counted', { output: { maxLines: 10, maxBytes: 1_000 } });
    const lines = await session.run("yes '' | head -n 10000000", { timeoutMs: 100_000 });
    expect(lines.totals).toMatchObject({ stdoutBytes: 10_000_000, stdoutLines: 10_000_000 });
    expect(lines.truncated).toMatchObject({ lines: true });
    const line = await session.run("head -c 30000000 /dev/zero | tr '\\0' x", { timeoutMs: 100_000 });
    expect(line.totals).toMatchObject({ stdoutBytes: 30_000_000, stdoutLines: 1 });
    expect(line.truncated).toEqual({ bytes: true, lines: false });
    expect(line.stdout.length).toBeLessThan(1_200);
  });
});

describe('the container of a session', () => {
  // case 74
  test('keeps its session after it was renamed by hand', async () => {
    const session = await stack.fleet.session('renamed');
    await session.run('kept=yes');
    await using inspector = inspectFleet(stack);
    const container = await inspector.container('renamed');
    await container.rename({ name: `${stack.namespace}-by-hand` });
    expect((await session.run('echo $kept')).stdout).toBe('yes\n');
    await stack.workers[0]?.kill();
    await stack.workers[0]?.start();
    expect((await session.run('echo $kept')).stdout).toBe('yes\n');
  });

  // case 75
  test('waits with the reason when no host allows its runtime, and gets no other runtime', async () => {
    const session = await stack.fleet.session('runtime', { policy: { type: 'docker', runtime: 'runsc' } });
    const command = await session.submit('echo never');
    const { noHostReason } = await until(
      () => session.info(),
      (info) => info.noHostReason !== undefined,
      20_000,
    );
    expect(noHostReason).toContain('runsc');
    expect(await command.cancel()).toBe(true);
    expect(await command.result()).toMatchObject({ outcome: 'cancellation', stdout: '' });
    await session.close();
  });
});

describe('a payload that was written straight to Redis', () => {
  const newer = JSON.stringify({ type: 'command', script: 'touch /tmp/ran', ofANewerVersion: true, timeoutMs: 'soon' });
  test.each([
    [
      '78: sealed by a newer version, with fields of other types',
      (seal: (text: string) => string) => seal(newer),
      'INTERNAL',
    ],
    ['78: of an unknown type', (seal: (text: string) => string) => seal('{"type":"of-a-newer-version"}'), 'INTERNAL'],
    ['67: not sealed', () => newer, 'SEAL_KEY_UNKNOWN'],
    ['67: sealed for another session', (_: unknown, foreign: string) => foreign, 'SEAL_KEY_UNKNOWN'],
  ])('ends as an error, runs nothing, and leaves the session usable: case %s', async (what, toPayload, code) => {
    const id = `straight-${what.replaceAll(/[^a-z0-9]+/g, '-')}`.slice(0, 60);
    const session = await stack.fleet.session(id);
    await session.run('kept=yes');
    const keys = sessionKeys(stack.keyspace, 'default', id);
    await using inspector = inspectFleet(stack);
    const entryId = ulid();
    const sealer = createSealer([stack.sealKey]);
    const generation = String(await inspector.redis.hget(keys.state, 'generation'));
    const entry = { id: entryId, generation, retry: 'never', inbox: '' };
    const seal = (text: string) => sealer.seal(text, sealPlace('payload', keys, entry));
    const elsewhere = sealPlace('payload', sessionKeys(stack.keyspace, 'default', 'another'), entry);
    const payload = toPayload(seal, sealer.seal(newer, elsewhere));
    await submit(inspector.redis, keys, newSubmission(generation, { entryId, payload, inbox: '' }));
    const next = session.run('echo $kept; ls /tmp/ran 2>/dev/null | wc -l');
    const result = await (await stack.fleet.command(`${id}.${entryId}`)).result();
    expect(result).toMatchObject({ outcome: 'error', exitCode: null, error: { code } });
    expect(await next).toMatchObject({ stdout: 'yes\n0\n' });
  });
});
