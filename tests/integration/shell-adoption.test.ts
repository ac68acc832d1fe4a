// A worker dies and another adopts the shell, which does not notice. Nothing is lost or doubled (invariants 1, 3;
// DESIGN 9).
import { finished } from 'node:stream/promises';
import { encodeFrame, entryIdToBytes, FrameType } from '@shellfleet/keeper';
import { FencedOff } from '@shellfleet/worker/shell';
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { md5 } from '../support/md5.ts';
import { host, openBox, skipWithoutRoot } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';

const RING_BYTES = 4 << 20;

describe('a command for a shell that has ended', () => {
  test('is refused even while no new shell can be started', async () => {
    await using it = await openBox();
    const asRoot = async (script: string) => {
      const command = { Cmd: ['sh', '-c', `cd /run/shellfleet && ${script}`], User: '0', AttachStdout: true };
      const said = await it.box.container.exec(command).then((exec) => exec.start({}));
      await finished(said.resume());
    };
    await asRoot('rm loop && mkdir loop');
    expect((await it.client.run('kill -9 $$')).end.shell).toMatchObject({ state: 'lost', shellNumber: 2 });
    await expect(it.client.run('echo x', { shellNumber: 1 })).rejects.toThrow('refused: other-shell');
    await asRoot('rmdir loop');
    expect(await it.client.run('echo x', { shellNumber: 2 })).toMatchObject({ out: 'x\n' });
  });
});

describe.each(['socket', 'attach', ...host] as const)('a shell over %s', (transport) => {
  skipWithoutRoot(transport);
  test('keeps running with its state without a worker', async () => {
    await using it = await openBox({ transport });
    await it.client.run('cd /dev; X=kept; f() { echo "$X"; }');
    it.client.shell.disconnect();
    const next = new ShellClient(await it.box.connect());
    expect(next.shell.hello).toMatchObject({ state: 'ended', shellNumber: 1, begunCount: 1 });
    expect((await next.run('pwd; f')).out).toBe('/dev\nkept\n');
  });

  test('lets the next worker follow its command from the first unstored byte', async () => {
    await using it = await openBox({ transport });
    const entryId = ulid();
    it.client.acks = false;
    const script = 'for i in 1 2 3 4 5 6; do echo line$i; echo e$i >&2; sleep 0.1; done; printf nonl; exit 7';
    it.client.run(script, { entryId }).catch(() => {});
    await expect.poll(() => it.client.received('stdout').toString()).toContain('line2\n');
    it.client.shell.ack(entryId, 'stdout', 6); // `line1\n` is stored, and no more
    it.client.shell.disconnect();
    const next = new ShellClient(await it.box.connect());
    expect(next.shell.hello).toMatchObject({ state: 'running', entryId, acked: { stdout: 6, stderr: 0 } });
    const ended = await next.resume(entryId, next.shell.hello.acked);
    expect(ended).toMatchObject({
      code: 7,
      out: 'line2\nline3\nline4\nline5\nline6\nnonl',
      err: 'e1\ne2\ne3\ne4\ne5\ne6\n',
    });
  });

  test('sends output and end of an ended command again at every resume', async () => {
    await using it = await openBox({ transport });
    const entryId = ulid();
    it.client.acks = false;
    it.client.run('echo a; sleep 0.3; echo b; exit 4', { entryId }).catch(() => {});
    await expect.poll(() => it.client.received('stdout').toString()).toBe('a\n');
    it.client.shell.disconnect();
    for (let worker = 0; worker < 2; worker++) {
      const next = new ShellClient(await it.box.connect());
      next.acks = false;
      const ended = await next.resume(entryId, { stdout: 0, stderr: 0 });
      expect(ended).toMatchObject({ code: 4, out: 'a\nb\n' });
      next.shell.disconnect();
    }
  });

  test('delivers 30 MB completely though the worker dies in the middle', async () => {
    await using it = await openBox({ transport, memoryBytes: 256 << 20 });
    const entryId = ulid();
    const script = 'cd /tmp; head -c 30000000 /dev/urandom > r; md5sum < r >&2; cat r; exit 5';
    it.client.run(script, { entryId, timeoutMs: 60_000 }).catch(() => {});
    await expect
      .poll(() => it.client.received('stdout').length, { interval: 1, timeout: 10_000 })
      .toBeGreaterThan(8 << 20);
    const stored = it.client.received('stdout');
    const half = encodeFrame(
      { type: FrameType.start, id: entryIdToBytes(ulid()), fence: 1, payload: new Uint8Array(100_000) },
      transport === 'attach' ? it.box.sync : undefined,
    );
    it.box.wire?.write(half.subarray(0, 5_000));
    it.client.shell.disconnect(); // like a kill: frames on their way are lost

    const next = new ShellClient(await it.box.connect());
    const { hello } = next.shell;
    expect(hello).toMatchObject({ state: 'running', entryId });
    expect(hello.received.stdout - hello.acked.stdout).toBeLessThanOrEqual(RING_BYTES);
    expect(hello.acked.stdout).toBeLessThanOrEqual(stored.length);

    const ended = await next.resume(entryId, { stdout: stored.length, stderr: 0 });
    const whole = Buffer.concat([stored, ended.stdout]);
    expect(whole).toHaveLength(30_000_000);
    expect(md5(whole)).toBe(ended.err.slice(0, 32) || it.client.received('stderr').toString().slice(0, 32));
    expect(ended.end).toMatchObject({ exitCode: 5, reason: 'exited', totals: { stdout: 30_000_000 } });
    expect((await next.run('echo still')).out).toBe('still\n');
  }, 40_000);

  test('pauses a command without a worker when its buffer is full', async () => {
    await using it = await openBox({ transport });
    const entryId = ulid();
    it.client.acks = false;
    it.client
      .run('head -c 6000000 /dev/zero; echo done >&2', { entryId, timeoutMs: 2_000, noOutputTimeoutMs: 2_000 })
      .catch(() => {});
    await expect.poll(() => it.client.received('stdout').length).toBe(RING_BYTES);
    it.client.shell.disconnect();
    await new Promise((resolve) => setTimeout(resolve, 3_000)); // longer than the command's timeout
    const next = new ShellClient(await it.box.connect());
    expect(next.shell.hello).toMatchObject({
      state: 'running',
      received: { stdout: RING_BYTES },
      acked: { stdout: 0 },
    });
    const ended = await next.resume(entryId, { stdout: 0, stderr: 0 });
    expect(ended).toMatchObject({ code: 0, err: 'done\n', end: { reason: 'exited', totals: { stdout: 6_000_000 } } });
  });

  test('does not begin a command twice', async () => {
    await using it = await openBox({ transport });
    const first = ulid();
    const second = ulid();
    await it.client.run('echo x >> /tmp/times', { entryId: first });
    await expect(it.client.run('echo x >> /tmp/times', { entryId: first })).rejects.toThrow('refused: ended');
    const running = it.client.run('sleep 0.3; echo y', { entryId: second });
    it.client.shell.disconnect();
    await expect(running).rejects.toThrow('disconnected');
    const next = new ShellClient(await it.box.connect());
    await expect(next.run('echo x >> /tmp/times', { entryId: second })).rejects.toThrow('refused: running');
    await expect(next.run('echo x >> /tmp/times', { entryId: first })).rejects.toThrow('refused: begun-before');
    await expect(next.run('echo x >> /tmp/times')).rejects.toThrow('refused: busy');
    expect((await next.resume(second, { stdout: 0, stderr: 0 })).out).toBe('y\n');
    expect((await next.run('wc -l < /tmp/times')).out).toBe('1\n');
  });

  test('refuses a command for an earlier shell, which then has not begun', async () => {
    await using it = await openBox({ transport });
    const entryId = ulid();
    await it.client.restart();
    await expect(it.client.run('echo x', { entryId, shellNumber: 1 })).rejects.toThrow('refused: other-shell');
    expect(await it.client.run('echo x', { entryId, shellNumber: 2 })).toMatchObject({ out: 'x\n' });
  });

  test('runs a command in its own shell or not at all after a kill', async () => {
    await using it = await openBox({ transport });
    for (let shellNumber = 1; shellNumber <= 10; shellNumber++) {
      await it.client.run(`shell=$$; (sleep 0.0${shellNumber}; kill -9 $shell) & :`, { shellNumber });
      const printed = new Set<string>();
      const refusal = await (async () => {
        for (;;) {
          const { out, end } = await it.client.run('echo "$shell"', { shellNumber });
          if (end.shell.shellNumber === shellNumber) printed.add(out);
        }
      })().catch((error: Error) => error.message);
      expect(refusal).toBe('refused: other-shell');
      expect([...printed].filter((out) => !/^\d+\n$/.test(out))).toEqual([]);
    }
  });

  test('disconnects a worker when one with a newer fence connects', async () => {
    await using it = await openBox({ transport });
    if (transport !== 'attach') it.client.shell.disconnect();
    const owner = new ShellClient(await it.box.connect({ fence: 7 }));
    await owner.run('X=1');
    if (transport === 'attach') {
      await expect.poll(() => it.client.disconnected).toBe('fenced');
    } else {
      owner.shell.disconnect();
    }
    await expect(it.box.connect({ fence: 6 })).rejects.toBeInstanceOf(FencedOff);
    const again = new ShellClient(await it.box.connect({ fence: 7 }));
    expect((await again.run('echo $X')).out).toBe('1\n');
  });

  test('reports its loss to the next worker', async () => {
    await using it = await openBox({ transport });
    await it.client.run('(sleep 0.2; kill -9 $$) & X=1');
    it.client.shell.disconnect();
    const next = new ShellClient(await it.box.connect());
    await expect.poll(async () => next.shell.hello.shellNumber + next.shells.length).toBe(2);
    expect((await next.run('echo "[$X]"')).end.shell).toMatchObject({ state: 'lost', shellNumber: 2 });
    expect((await next.run('true')).end.shell).toMatchObject({ state: 'kept', shellNumber: 2 });
  });

  test('stops the clocks of its command while storage is away', async () => {
    await using it = await openBox({ transport });
    const running = it.client.run('sleep 0.8; echo done', { timeoutMs: 500, noOutputTimeoutMs: 500 });
    it.client.shell.storage('away');
    await expect(running).resolves.toMatchObject({ out: 'done\n', end: { reason: 'exited' } });
    const stopped = it.client.run('sleep 60', { timeoutMs: 300 });
    it.client.shell.storage('away');
    it.client.shell.storage('back');
    await expect(stopped).resolves.toMatchObject({ end: { reason: 'wall' } });
  });

  test('restarts the clocks when another worker adopts it while storage is away', async () => {
    await using it = await openBox({ transport });
    const entryId = ulid();
    it.client.run('sleep 60', { entryId, timeoutMs: 300 }).catch(() => {});
    it.client.shell.storage('away');
    it.client.shell.disconnect();
    const next = new ShellClient(await it.box.connect());
    expect(await next.resume(entryId, { stdout: 0, stderr: 0 })).toMatchObject({ end: { reason: 'wall' } });
  });

  test('runs its EXIT trap at the end of the session, which ends the container', async () => {
    await using it = await openBox({ transport });
    await it.client.run('trap "echo bye > /tmp/bye; sleep 0.1" EXIT; sleep 1000 & true');
    await it.client.shell.end({ terminationTimeoutMs: 2_000 });
    expect(it.client.disconnected).toBe('closed');
    expect(await it.box.exitCode()).toBe(0);
  });

  test('stops its command at the end of the session, and reports that first', async () => {
    await using it = await openBox({ transport });
    const running = it.client.run('echo part; sleep 100', { killGraceMs: 500 });
    await expect.poll(() => it.client.received('stdout').toString()).toBe('part\n');
    const ending = it.client.shell.end({ terminationTimeoutMs: 2_000 });
    expect(await running).toMatchObject({ out: 'part\n', end: { reason: 'cancelled' } });
    await ending;
  });
});
