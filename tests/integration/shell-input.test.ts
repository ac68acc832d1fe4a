// An open stdin. Bytes that arrive while the command runs reach it once and in order, and the end of the command does
// not wait for them.
import { randomBytes } from 'node:crypto';
import { INPUT_WINDOW_BYTES } from '@shellfleet/keeper';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { md5 } from '../support/md5.ts';
import { type ShellBox, useBox } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';
import { ShellFeed } from '../support/shell-feed.ts';
import { until } from '../support/until.ts';

const none = new Uint8Array(0);
const text = (words: string) => Buffer.from(words);

/** Starts a command with an open stdin. */
function open(it: ShellBox, script: string, timeoutMs = 20_000) {
  const entryId = ulid();
  const { client } = it;
  const ran = client.run(script, { entryId, stdin: 'open', timeoutMs });
  ran.catch(() => {});
  let offset = 0;
  const send = (words: string, end = false) => {
    client.shell.input(entryId, offset, text(words), end);
    offset += Buffer.byteLength(words);
  };
  return { entryId, ran, send };
}

/** Starts a command, and feeds all of the bytes to it. */
function feed(it: ShellBox, script: string, bytes: Uint8Array) {
  const entryId = ulid();
  const ran = it.client.run(script, { entryId, stdin: 'open', timeoutMs: 25_000 });
  const feeder = new ShellFeed(it.client, entryId, bytes);
  feeder.send();
  return { entryId, ran, feeder };
}

describe.each([
  { transport: 'socket', image: 'session', shell: [] },
  { transport: 'attach', image: 'session', shell: [] },
  { transport: 'socket', image: 'session', shell: ['/bin/dash'] },
  { transport: 'socket', image: 'busybox', shell: ['/bin/sh'] },
] as const)('an open stdin in $image $shell over $transport', ({ transport, image, shell }) => {
  const it = useBox({ transport, image, shell: [...shell] });

  test('passes fifty megabytes byte for byte', async () => {
    const bytes = randomBytes(50_000_000);
    const { ran } = feed(it, 'md5sum | cut -c1-32; pwd >/dev/null', bytes);
    expect(await ran).toMatchObject({ out: `${md5(bytes)}\n`, err: '', code: 0, state: 'kept' });
  });

  test('passes each line to the command before the next one is written', async () => {
    const { ran, send } = open(it, 'while read -r line; do echo "<$line>"; done; echo end');
    const tookMs: number[] = [];
    for (let i = 0; i < 50; i += 1) {
      const from = performance.now();
      send(`line ${i}\n`);
      await until(
        () => it.client.received('stdout').toString(),
        (text) => text.endsWith(`<line ${i}>\n`),
      );
      tookMs.push(performance.now() - from);
    }
    send('', true);
    expect((await ran).out.endsWith('<line 49>\nend\n')).toBe(true);
    expect(tookMs.sort((a, b) => a - b)[25]).toBeLessThan(500);
  });

  test('ends immediately, or after the bytes that were sent before', async () => {
    const empty = open(it, 'cat; echo "[$?]"');
    empty.send('', true);
    expect(await empty.ran).toMatchObject({ out: '[0]\n', code: 0 });
    const some = open(it, 'cat; read x; echo "[$?]"');
    some.send('a\n');
    some.send('b', true);
    expect(await some.ran).toMatchObject({ out: 'a\nb[1]\n' });
  });

  test('does not delay a command that reads only a part of it', async () => {
    const { ran, feeder } = feed(it, 'head -c 10 | wc -c', Buffer.alloc(50_000_000, 'x'));
    const ended = await ran;
    expect(ended).toMatchObject({ code: 0, state: 'kept' });
    expect(ended.out.trim()).toBe('10');
    expect(feeder.taken).toBeLessThan(3_000_000);
    expect(await it.client.run('cat; read x; echo $?')).toMatchObject({ out: '1\n' });
    expect(await it.client.run('cat', { stdin: text('given') })).toMatchObject({ out: 'given' });
    const again = open(it, 'cat');
    again.send('fresh', true);
    expect(await again.ran).toMatchObject({ out: 'fresh' });
  });

  test('passes repeated or misplaced bytes once', async () => {
    const { entryId, ran } = open(it, 'cat');
    const { shell: connection } = it.client;
    connection.input(entryId, 0, text('abc'), false);
    connection.input(entryId, 0, text('abc'), false);
    connection.input(entryId, 1, text('bcde'), false);
    connection.input(entryId, 99, text('beyond'), true);
    connection.input(ulid(), 5, text('of another'), true);
    connection.input(entryId, 5, text('f'), true);
    connection.input(entryId, 6, text('behind the end'), true);
    expect(await ran).toMatchObject({ out: 'abcdef', code: 0 });
  });

  test('discards bytes that arrive after the script has closed its stdin', async () => {
    const script = 'read x; exec </dev/null; echo "$x"; sleep 20';
    const { entryId, ran, feeder } = feed(it, script, Buffer.alloc(3_000_000, 'y\n'));
    await until(
      () => [feeder.readerClosed, feeder.taken],
      ([readerClosed, taken]) => readerClosed === true && taken === 3_000_000,
    );
    it.client.shell.stop(entryId, { killGraceMs: 0 });
    expect(await ran).toMatchObject({ out: 'y\n', end: { reason: 'cancelled' } });
  });

  test('stays open for a background process without delaying the end of the command', async () => {
    const script = 'read x; { cat > /tmp/rest; echo done > /tmp/rest-done; } <&0 & echo "$x"';
    const { ran, send } = open(it, script);
    send('one\n');
    // The background process has not closed stdin.
    expect(await ran).toMatchObject({ out: 'one\n', code: 0, state: 'kept' });
    await it.client.run('i=0; until [ -f /tmp/rest-done ] || [ $i = 50 ]; do sleep 0.1; i=$((i+1)); done');
    expect((await it.client.run('cat /tmp/rest /tmp/rest-done; rm /tmp/rest-done')).out).toBe('done\n');
  });

  test('does not prevent the stop or the timeouts of a command that waits for it', async () => {
    const cancelled = open(it, 'echo before; cat');
    await until(
      () => it.client.received('stdout').toString(),
      (text) => text === 'before\n',
    );
    it.client.shell.stop(cancelled.entryId, { killGraceMs: 1_000 });
    expect(await cancelled.ran).toMatchObject({ out: 'before\n', end: { reason: 'cancelled' } });
    const late = open(it, 'echo before; read x', 400);
    expect(await late.ran).toMatchObject({ out: 'before\n', end: { reason: 'wall' } });
    const entryId = ulid();
    const options = { entryId, stdin: 'open', timeoutMs: 20_000, noOutputTimeoutMs: 400 } as const;
    expect(await it.client.run('echo before; cat', options)).toMatchObject({ end: { reason: 'no-output' } });
    expect(await it.client.run('echo after')).toMatchObject({ out: 'after\n' });
  });

  test('is available together with a here-document, a directory and variables', async () => {
    const entryId = ulid();
    const surroundings = { entryId, stdin: 'open', cwd: '/', env: { WORD: 'w' } } as const;
    const ran = it.client.run('cat <<E; cat; echo $WORD; pwd\nhere\nE\n', surroundings);
    it.client.shell.input(entryId, 0, text('there\n'), true);
    expect(await ran).toMatchObject({ out: 'here\nthere\nw\n/\n', code: 0 });
  });

  test('ends with the command if the directory is missing', async () => {
    const entryId = ulid();
    const ran = it.client.run('cat', { entryId, stdin: 'open', cwd: '/nowhere' });
    it.client.shell.input(entryId, 0, text('unread'), false);
    expect(await ran).toMatchObject({ out: '', end: { reason: 'cwd' } });
    expect(await it.client.run('cat; echo $?')).toMatchObject({ out: '0\n' });
  });
});

describe.each(['socket', 'attach'] as const)('a worker that adopts an open stdin over %s', (transport) => {
  const it = useBox({ transport });
  let owner: ShellClient | undefined;
  const takeOver = async () => {
    (owner ?? it.client).shell.disconnect();
    owner = new ShellClient(await it.box.connect());
    return owner;
  };

  test('continues at the offset in the pipe, without losing or repeating bytes', async () => {
    const bytes = randomBytes(20_000_000);
    // The script is slow enough that the connections below break in the middle.
    const script = 'i=0; while [ $i -lt 20 ]; do head -c 500000; sleep 0.02; i=$((i+1)); done; cat';
    const entryId = ulid();
    const first = await takeOver();
    const begun = first.run(`{ ${script}; } | md5sum | cut -c1-32`, { entryId, stdin: 'open', timeoutMs: 25_000 });
    begun.catch(() => {});
    const feeder = new ShellFeed(first, entryId, bytes);
    feeder.send();
    let at = 0;
    let client = first;
    for (let connection = 0; connection < 5; connection += 1) {
      await until(
        () => feeder.taken,
        (taken) => taken > at + 1_000_000,
      );
      at = feeder.taken;
      client = await takeOver();
      feeder.follow(client);
      feeder.rewind();
      const ran = client.resume(entryId, { stdout: 0, stderr: 0 });
      feeder.send();
      if (connection === 4) expect(await ran).toMatchObject({ out: `${md5(bytes)}\n`, code: 0 });
      else ran.catch(() => {});
    }
  });

  test('receives how much was written to the pipe, though nothing is read', async () => {
    const entryId = ulid();
    const first = await takeOver();
    first.run('echo up; sleep 20', { entryId, stdin: 'open', timeoutMs: 25_000 }).catch(() => {});
    await until(
      () => first.received('stdout').toString(),
      (text) => text === 'up\n',
    );
    const feeder = new ShellFeed(first, entryId, Buffer.alloc(3_000_000));
    feeder.send();
    await until(
      () => feeder.taken,
      (taken) => taken >= 65_536,
    );
    const second = await takeOver();
    const reports: [string, number, boolean][] = [];
    second.onInputTaken = (...words) => reports.push(words);
    const ran = second.resume(entryId, { stdout: 3, stderr: 0 });
    await until(
      () => reports.length,
      (count) => count > 0,
    );
    expect(reports[0]).toEqual([entryId, feeder.taken, false]);
    // Only the pipe and one window are held for a command that does not read.
    expect(feeder.taken).toBeLessThanOrEqual(INPUT_WINDOW_BYTES);
    second.shell.input(entryId, feeder.taken, none, true);
    second.shell.stop(entryId, { killGraceMs: 0 });
    expect(await ran).toMatchObject({ end: { reason: 'cancelled' } });
  });
});
