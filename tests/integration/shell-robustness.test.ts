// Junk, forged frames, floods and half frames, sent to the keeper and to the worker. The shell survives them.
import { randomBytes } from 'node:crypto';
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { PassThrough } from 'node:stream';
import { describeKeeperExit, encodeFrame, entryIdToBytes, FrameType, uint32s, uint64s } from '@shellfleet/keeper';
import { ulid } from 'ulid';
import { describe, expect, inject, test } from 'vitest';
import { KeeperContainer } from '../support/keeper-container.ts';
import { openBox, useBox } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';

/**
 * Connects a listener that sends to the keeper what no worker sends. Resolves when the keeper has closed the
 * connection.
 */
async function misbehave(box: KeeperContainer, talk: (socket: Socket) => void): Promise<void> {
  await rm(box.socketPath, { force: true });
  const hungUp = Promise.withResolvers<void>();
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => talk(socket));
    socket.once('close', () => hungUp.resolve());
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(box.socketPath, resolve));
  await chmod(box.socketPath, 0o666);
  await hungUp.promise;
}

const claim = (fence: number) => encodeFrame({ type: FrameType.claim, fence });

describe('the keeper with a broken worker', () => {
  test.each<[string, (socket: Socket) => void]>([
    ['random bytes', (socket) => socket.write(randomBytes(5_000))],
    ['a frame that is too long', (socket) => socket.write(Buffer.alloc(40, 255))],
    [
      'a frame of no known type',
      (socket) => socket.write(Buffer.concat([claim(2), encodeFrame({ type: 99, fence: 2 })])),
    ],
    ['nothing at all', () => {}],
    ['half a frame and a disconnect', (socket) => socket.end(claim(2).subarray(0, 17))],
    [
      'half a command and a disconnect',
      (socket) => {
        const start = encodeFrame({
          type: FrameType.start,
          fence: 2,
          id: entryIdToBytes(ulid()),
          payload: new Uint8Array(5_000),
        });
        socket.end(Buffer.concat([claim(2), start.subarray(0, 3_000)]));
      },
    ],
  ])('closes the connection and keeps the shell after %s', async (_, talk) => {
    await using it = await openBox();
    await it.client.run('X=kept');
    it.client.shell.disconnect();
    await misbehave(it.box, talk);
    const next = new ShellClient(await it.box.connect({ fence: 3 }));
    expect((await next.run('echo $X')).out).toBe('kept\n');
  });

  test('ignores wrong offsets, entries and lengths', async () => {
    await using it = await openBox();
    const { box, client } = it;
    const send = (frame: Parameters<typeof encodeFrame>[0]) => box.wire?.write(encodeFrame({ fence: 1, ...frame }));
    const running = client.run('echo a; sleep 0.3; echo b', { entryId: ulid() });
    await expect.poll(() => client.received('stdout').toString()).toBe('a\n');
    const id = entryIdToBytes(ulid());
    send({ type: FrameType.ack, id, offset: 1_000 });
    send({ type: FrameType.resume, id, payload: uint64s(5, 5) });
    send({ type: FrameType.stop, id, payload: uint32s(0) });
    send({ type: FrameType.stop, id, payload: new Uint8Array(2) });
    send({ type: FrameType.ack, stream: 77, offset: 2 ** 52 });
    send({ type: FrameType.start, flags: 9, id });
    send({ type: FrameType.start, id, payload: uint32s(0, 0, 0, 4_000_000_000, 4_000_000_000, 4_000_000_000, 1) });
    send({ type: FrameType.start, fence: 0, id });
    expect(await running).toMatchObject({ out: 'a\nb\n', code: 0 });
    client.shell.ack(ulid(), 'stdout', 2 ** 50);
    for (const payload of [uint32s(0, 99), uint32s(0, 1, 8, 4, 4), new Uint8Array(0), randomBytes(3_000)]) {
      send({ type: FrameType.fileCall, id: entryIdToBytes(ulid()), payload });
      send({ type: FrameType.start, flags: 0, id: entryIdToBytes(ulid()), payload });
    }
    expect((await client.run('echo still')).out).toBe('still\n');
    await expect(client.run('echo $A', { env: { 'A;touch /tmp/x;B': '1' } })).rejects.toThrow('refused: invalid');
    expect((await client.run('ls /tmp/x')).code).not.toBe(0);
  });

  test('skips junk over attach', async () => {
    await using it = await openBox({ transport: 'attach' });
    const { box, client } = it;
    await client.run('X=kept');
    box.wire?.write(randomBytes(100_000));
    box.wire?.write(Buffer.concat([box.sync, randomBytes(200)]));
    box.wire?.write(Buffer.concat([box.sync, Buffer.alloc(40, 255), box.sync]));
    expect((await client.run('echo $X')).out).toBe('kept\n');
    expect(client.disconnected).toBeUndefined();
  });
});

describe('the log of the keeper', () => {
  test('contains why the keeper cannot start, before it exits with a code', async () => {
    await using box = await KeeperContainer.create({
      dockerHost: inject('dockerHost'),
      image: inject('sessionImage'),
      env: { SF_DIRECTORY: '/proc/none' },
    });
    const messages: string[] = [];
    const connecting = box.connect({ start: true, onMessage: (message) => messages.push(message) });
    await expect(connecting).rejects.toThrow(
      /ended before it was claimed .* SF_DIRECTORY .*: No such file or directory/,
    );
    expect(messages).toEqual([
      expect.stringMatching(/^SF_DIRECTORY .* must be a directory .*: No such file or directory$/),
    ]);
    expect(describeKeeperExit(await box.exitCode())).toBe('Its keeper cannot write to its directory.');
  });

  // S2-22
  test("contains a message if no pipe can be made in the keeper's directory", async () => {
    await using box = await KeeperContainer.create({
      dockerHost: inject('dockerHost'),
      image: inject('sessionImage'),
      // Every user can write to this directory, but can make only message queues there.
      env: { SF_DIRECTORY: '/dev/mqueue' },
    });
    await expect(box.connect({ start: true })).rejects.toThrow(
      /ended before it was claimed .*opening an output pipe: No such file or directory/,
    );
    expect(describeKeeperExit(await box.exitCode())).toBe('Its keeper cannot write to its directory.');
  });

  test.each(['socket', 'attach'] as const)('arrives before the claim is acknowledged, over %s', async (transport) => {
    await using box = await KeeperContainer.create({
      dockerHost: inject('dockerHost'),
      image: inject('sessionImage'),
      transport,
      shell: ['/bin/false'],
    });
    const messages: string[] = [];
    let start = true;
    const stateAtConnection = async () => {
      const shell = await box.connect({ start, onMessage: (message) => messages.push(message) });
      start = false;
      // Over attach a keeper does not notice that its reader is gone, so messages of that moment are lost.
      if (shell.hello.state !== 'no-shell') await expect.poll(() => messages).not.toEqual([]);
      shell.disconnect();
      return shell.hello.state;
    };
    await expect.poll(stateAtConnection, { timeout: 20_000 }).toBe('no-shell');
    expect(new Set(messages)).toEqual(new Set(['the shell /bin/false ended with status 1 before it was ready']));
  });
});

describe('the log of a keeper', () => {
  test('contains why there is no shell', async () => {
    await using box = await KeeperContainer.create({
      dockerHost: inject('dockerHost'),
      image: inject('testImages').noShell,
      transport: 'socket',
    });
    const messages: string[] = [];
    const shell = await box.connect({ start: true, onMessage: (message) => messages.push(message) });
    shell.disconnect();
    expect(messages).toEqual(['the image has neither /bin/bash, /usr/bin/bash nor /bin/sh']);
  });
});

describe('the keeper in a hostile container', () => {
  const it = useBox();

  test('hides its secrets and protects its directory', async () => {
    const script = `env | grep -c SF_; cat /proc/1/environ | wc -c; cat /proc/1/mem | wc -c; ls -l /proc/1/fd | wc -l
      rm -f /.shellfleet/socket; echo x > /.shellfleet/y; ln -s / /.shellfleet/l; chmod 777 /.shellfleet; ls /.shellfleet; ls -d /.shellfleet/*`;
    expect((await it.client.run(script)).out).toBe('0\n0\n0\n0\n');
  });

  test('survives when a command kills every process, and runs the next command', async () => {
    await it.client.run('X=kept');
    expect((await it.client.run('kill -9 -1; kill -TERM 1; kill -KILL 1; kill -STOP 1; echo $X')).out).toBe('kept\n');
    await it.client.run('(kill -9 -1) 2>/dev/null'); // sent by a child, so it reaches the shell too
    expect((await it.client.run('echo alive')).out).toBe('alive\n');
  });

  test('ignores a forged report without the run token', async () => {
    expect(
      await it.client.run(
        'printf "\\nnone 0 kept\\nready 0 \\nt0 0 kept\\n" > /run/shellfleet/report; sleep 0.1; exit 9',
      ),
    ).toMatchObject({ code: 9 });
    const forged = await it.client.run(
      'printf "\\n%s 0 kept\\n" $__sf_token > /run/shellfleet/report; sleep 0.2; echo x; exit 9',
    );
    expect(forged).toMatchObject({ code: 0 });
    await expect.poll(async () => (await it.client.run('echo next')).out).toBe('next\n');
  });

  // S1-01
  test('makes a new random run token for each command', async () => {
    const tokens: string[] = [];
    for (let run = 0; run < 3; run += 1) tokens.push((await it.client.run('echo $__sf_token')).out);
    // The last digit names the file of the script.
    for (const token of tokens) expect(token).toMatch(/^[0-9a-f]{7}0\n$/);
    expect(new Set(tokens).size).toBe(3);
  });

  test('is not disturbed by junk in the FIFOs of the loop', async () => {
    await it.client.run('head -c 300000 /dev/urandom > /run/shellfleet/report & sleep 0.2; echo a');
    expect((await it.client.run('echo ok')).out).toBe('ok\n');
  });

  test.each([
    ['the builtin', {}, 'kept'],
    ['the loop', { SF_LOOP: '1' }, 'lost'],
  ])('loses at most the shell when the files of %s are removed', async (_, env, state) => {
    await using other = await openBox({ env });
    const run = (script: string) => other.client.run(script, { timeoutMs: 1_000, killGraceMs: 300 });
    expect((await run('rm -rf /run/shellfleet/*; echo gone')).state).toBe(state);
    expect((await run('echo ok')).out).toBe('ok\n');
    await run('rm -f /run/shellfleet/stdout /run/shellfleet/stderr');
    expect(await run('echo out; echo err >&2')).toMatchObject({ out: 'out\n', err: 'err\n' });
  });

  test('replaces links and FIFOs in place of its files without following them', async () => {
    await it.client.run(
      'echo precious > /tmp/p; cd /run/shellfleet; rm -f hooks input; ln -s /tmp/p input; mkfifo hooks; cd /',
    );
    expect((await it.client.run('cat; cat /tmp/p', { stdin: Buffer.from('in\n') })).out).toBe('in\nprecious\n');
  });

  test('runs later commands though a process reads the FIFO of its stdout', async () => {
    await it.client.run('(while :; do head -c 100 /run/shellfleet/stdout >/dev/null; done) >/dev/null 2>&1 & echo $!');
    for (let i = 0; i < 20; i++) expect((await it.client.run('echo stolen')).code).toBe(0);
    await it.client.run('kill -9 $!');
    expect((await it.client.run('pkill -9 head; echo back')).code).toBe(0);
    await expect.poll(async () => (await it.client.run('echo mine')).out).toBe('mine\n');
  });

  test("keeps a flood from the background out of other commands' output", async () => {
    await it.client.run('yes LATE & yes ERR >&2 & true');
    const next = await it.client.run('echo mine; echo err >&2');
    expect(next).toMatchObject({ out: 'mine\n', err: 'err\n' });
    const lateBytes = () => it.client.late.reduce((sum, one) => sum + one.text.length, 0);
    await it.client.run('sleep 2');
    expect(lateBytes()).toBeGreaterThan(1 << 20);
    expect(lateBytes()).toBeLessThan(8 << 20); // late output is throttled
    it.client.late.length = 0;
    expect((await it.client.run('pkill -9 yes; echo ok')).out).toBe('ok\n');
  });

  test('assigns late output to each of many background processes', async () => {
    it.client.late.length = 0;
    const ids: string[] = [];
    for (let i = 0; i < 60; i++) ids.push((await it.client.run(`(sleep 1; echo ${i}) &`)).entryId);
    const late = () => it.client.late.filter((one) => ids.includes(one.entryId));
    await expect.poll(() => late().length, { timeout: 5_000 }).toBe(60);
    expect(new Map(late().map((one) => [one.entryId, one.text]))).toEqual(new Map(ids.map((id, i) => [id, `${i}\n`])));
  });
});

describe("the worker's socket in a hostile container", () => {
  test('lets the keeper in through five hundred junk connections', {
    timeout: 60_000,
  }, async () => {
    await using it = await openBox();
    await it.client.run('X=kept');
    const attack = `import socket, time
held = []
for i in range(500):
    try:
        s = socket.socket(socket.AF_UNIX); s.connect('/.shellfleet/socket')
        if i % 3: s.send(b'x' * 100)
        held.append(s)
    except OSError: time.sleep(0.01)
print(len(held), flush=True)`;
    const running = it.client.run(`python3 -c "$A" & sleep 1; wait; echo done`, {
      env: { A: attack },
      timeoutMs: 30_000,
    });
    it.client.shell.disconnect();
    await expect(running).rejects.toThrow('disconnected');
    const listener = await it.box.listen();
    try {
      const first = await listener.accept({ signal: AbortSignal.timeout(10_000) });
      first.close(); // the worker must connect again among the junk connections
    } finally {
      listener.close();
    }
    const next = new ShellClient(await it.box.connect());
    expect((await next.resume(next.shell.hello.entryId ?? '', { stdout: 0, stderr: 0 })).out).toMatch(/done\n$/);
    expect((await next.run('echo $X')).out).toBe('kept\n');
  });
});

describe('a session that poses as its keeper', () => {
  const it = useBox();

  /** Runs a script in the container as the session's user, but outside the shell. */
  async function outside(script: string): Promise<string> {
    const exec = await it.box.container.exec({ Cmd: ['sh', '-c', script], AttachStdout: true, User: '1000:1000' });
    const stream = await exec.start({});
    const text = new PassThrough();
    it.box.container.modem.demuxStream(stream, text, new PassThrough().resume());
    stream.once('end', () => text.end());
    return Buffer.concat(await text.toArray()).toString();
  }

  test('cannot read the memory of a copy of the keeper during a file operation', async () => {
    const { reading, id } = await it.client.readFrozen();
    const look =
      'for p in /proc/[0-9]*; do [ $p != /proc/1 ] && grep -q "^Name:.keeper" $p/status || continue; cat $p/maps > /dev/null && echo readable || echo private; ls $p/fd > /dev/null || echo closed; done';
    expect(await outside(look)).toBe('private\nclosed\n');
    it.client.shell.files.stop(id);
    expect(await reading).toEqual({ type: 'killed' });
  });
});

describe('the directory of the shell', () => {
  const replaced: [string, string][] = [
    ['is gone', 'rm -f'],
    ['is a directory', 'mkdir'],
    ['is a link', 'ln -s /dev/null'],
    ['is a plain file', 'echo >'],
    ['may not be opened', 'mkfifo -m 000'],
  ];
  test.each(replaced)('does not stop later commands if a name in it %s', async (_, how) => {
    await using it = await openBox();
    for (const name of ['go', 'report', 'stdout', 'stderr', 'input', 'state']) {
      const options = { timeoutMs: 500, killGraceMs: 200 };
      await it.client.run(`cd /run/shellfleet; mv ${name} moved; ${how} ${name}; rm -rf moved; cd /`, options);
      await it.client.run('kill -9 $$', options);
      for (const cwd of ['/', '/proc']) expect(await it.client.run('pwd', { cwd })).toMatchObject({ out: `${cwd}\n` });
      await it.client.run('rm -rf /run/shellfleet/*.replaced-*');
    }
  });
});
