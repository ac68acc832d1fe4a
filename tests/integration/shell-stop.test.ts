// Deadlines and cancellations. The whole tree of the command ends, older processes stay, and the session continues.
import { ulid } from 'ulid';
import { describe, expect, test } from 'vitest';
import { host, type ImageName, openBox, skipWithoutRoot, useBox } from '../support/shell-box.ts';

const killGraceMs = 600;

describe.each([
  ['bash', 'session', 'socket'],
  ['bash', 'session', 'attach'],
  ['busybox ash', 'busybox', 'socket'],
  ...host.map((place) => ['bash', 'session', place]),
] as [string, ImageName, 'socket' | 'attach' | 'host'][])('a stop in %s (%s over %s)', (name, image, transport) => {
  skipWithoutRoot(transport);
  const it = useBox({ image, transport });
  const run: typeof it.client.run = (...args) => it.client.run(...args);
  const kept = name === 'bash' ? 'kept' : 'partial';

  // S1-26
  test('keeps partial output and the state of the shell at a timeout', async () => {
    const ended = await run('F=set; cd /proc; echo part; sleep 1000; echo no', { timeoutMs: 200, killGraceMs });
    expect(ended).toMatchObject({ out: 'part\n', end: { reason: 'wall', shell: { state: kept } } });
    expect(ended.ms).toBeLessThan(200 + killGraceMs + 1_500);
    expect((await run('pwd; echo $F')).out).toBe('/proc\nset\n');
  });

  test('ends a loop of builtins', async () => {
    const ended = await run('G=1; while :; do G=2; done', { timeoutMs: 200, killGraceMs });
    expect(ended.end).toMatchObject({ reason: 'wall', shell: { state: kept } });
    expect((await run('echo $G')).out).toBe('2\n');
  });

  test('follows when the time without output is over, which restarts with each output', async () => {
    const script = 'for i in 1 2 3 4; do echo $i; sleep 0.4; done; sleep 60';
    const ended = await run(script, { noOutputTimeoutMs: 1_200, killGraceMs });
    expect(ended).toMatchObject({ out: '1\n2\n3\n4\n', end: { reason: 'no-output' } });
    expect(ended.ms).toBeGreaterThan(2_300);
  });

  // S1-59
  test('kills a process that ignores INT and TERM within the grace', async () => {
    const script = 'sh -c \'trap "" TERM INT; echo in; while :; do sleep 1; done\'';
    const ended = await run(script, { timeoutMs: 200, killGraceMs });
    expect(ended).toMatchObject({ out: 'in\n', end: { reason: 'wall', shell: { state: kept } } });
    expect(ended.ms).toBeLessThan(200 + killGraceMs + 1_500);
  });

  // mutants-3, `ladder-int`: SIGINT is for processes that already run.
  test('does not interrupt a program that the EXIT trap starts', async () => {
    const script = "trap 'sleep 0.3 && echo whole' EXIT; while :; do :; done";
    expect(await run(script, { timeoutMs: 100, killGraceMs: 10_000 })).toMatchObject({ out: 'whole\n' });
  });

  // S2-30. A process with a living parent is reaped by that parent.
  test('leaves no zombie of commands, helpers, terminals or their children', async () => {
    await run('(sh -c "sleep 0.01; exit 3" &) ; (setsid sleep 0.02 &); sh -c "kill -9 \\$\\$"', { timeoutMs: 5_000 });
    await run('sleep 30 & sh -c "sleep 31 & sleep 32"', { timeoutMs: 100, killGraceMs });
    for (const path of ['/tmp', '/none']) await it.client.file({ type: 'list', path });
    await Promise.all(
      ['/tmp', '/none'].map((path) => it.client.shell.files.call(ulid(), { type: 'stat', path }, 10_000)),
    );
    // If the shell re-executed itself while a child ended, it reaps that child when it next waits for a child: here `sh
    // -c :`.
    const states =
      'sh -c :; for stat in /proc/[0-9]*/stat; do while read -r line; do echo "$line"; done <$stat; done 2>/dev/null';
    const zombies = async () => (await run(states)).out.split('\n').filter((line) => /\) [ZX] /.test(line));
    await expect.poll(zombies, { timeout: 5_000 }).toEqual([]);
  });

  test('gives a process time to clean up after INT or TERM', async () => {
    const script = 'sh -c \'trap "echo cleaned; exit" TERM; trap "" INT; while :; do sleep 0.05; done\'';
    expect(await run(script, { timeoutMs: 200, killGraceMs: 4_000 })).toMatchObject({ out: 'cleaned\n' });
  });

  test('sends SIGINT immediately, and SIGTERM after a fifth of the grace', async () => {
    const now = 'now() { read -r up _ </proc/uptime; up=${up%.*}${up#*.}; }';
    const traps = 'trap "now; begun=\\$up; echo interrupted" INT; trap "now; echo \\$((up - begun)); exit" TERM';
    const script = `sh -c '${now}; ${traps}; while :; do sleep 0.01; done'`;
    const { out } = await run(script, { timeoutMs: 200, killGraceMs: 8_000 });
    const [first, hundredths] = out.split('\n');
    expect(first).toBe('interrupted');
    expect(Number(hundredths)).toBeGreaterThan(150);
    expect(Number(hundredths)).toBeLessThan(190);
  });

  test('ends the tree of the command, but no older processes', async () => {
    const server = "(while :; do sh -c 'sleep 0.3'; done) >/dev/null 2>&1 & echo $!";
    const pid = (await run(server)).out.trim();
    const tree = "sh -c 'sleep 1001 & sleep 1002' & sh -c 'sleep 1003 & sleep 1004' | cat";
    expect((await run(tree, { timeoutMs: 300, killGraceMs })).end.reason).toBe('wall');
    const background = await it.client.shell.background();
    expect(background.filter((one) => /100[1-4]/.test(one.command))).toEqual([]);
    expect(background.map((one) => String(one.pid))).toContain(pid);
    expect((await run(`kill ${pid}`)).code).toBe(0);
  });

  test('ends a stopped process, too', async () => {
    const ended = await run("sh -c 'kill -STOP $$'", { timeoutMs: 200, killGraceMs });
    expect(ended.end).toMatchObject({ reason: 'wall', shell: { state: kept } });
  });

  test('is reported as `cancelled` after a cancellation', async () => {
    const entryId = ulid();
    const running = run('echo p; sleep 100', { entryId });
    await expect.poll(() => it.client.received('stdout').toString()).toBe('p\n');
    it.client.shell.stop(entryId, { killGraceMs });
    expect(await running).toMatchObject({ out: 'p\n', end: { reason: 'cancelled', shell: { state: kept } } });
  });

  test('changes nothing if the request comes too late or names another command', async () => {
    const { entryId } = await run('true');
    it.client.shell.stop(entryId, { killGraceMs });
    it.client.shell.stop(ulid(), { killGraceMs });
    expect((await run('echo ok')).out).toBe('ok\n');
  });

  test('replaces a shell that does not respond, and the Result reports that', async () => {
    const ended = await run("trap '' URG; while :; do :; done", { timeoutMs: 100, killGraceMs });
    expect(ended.end).toMatchObject({ reason: 'wall', shell: { state: 'lost' } });
    expect((await run('echo "[$F]"')).out).toBe('[]\n');
  });

  test('keeps the state of the shell even without a grace', async () => {
    await run('H=1');
    const ended = await run('sleep 100', { timeoutMs: 100, killGraceMs: 0 });
    expect(ended.end).toMatchObject({ reason: 'wall', shell: { state: kept } });
    expect((await run('echo $H')).out).toBe('1\n');
  });

  test('kills processes immediately without a grace', async () => {
    const script = 'sh -c \'trap "echo asked" INT TERM; echo in; while :; do :; done\'';
    expect(await run(script, { timeoutMs: 300, killGraceMs: 0 })).toMatchObject({
      out: 'in\n',
      end: { reason: 'wall' },
    });
  });
});

describe.each(['socket', ...host] as const)('a shell at the limits of its sandbox (%s)', (transport) => {
  skipWithoutRoot(transport);
  test('ends a fork bomb in the foreground with its command', async () => {
    await using it = await openBox({ transport, pids: 64 });
    await it.client.run('J=1');
    const bomb = await it.client.run('f() { f | f & }; f; sleep 100', { timeoutMs: 800, killGraceMs });
    expect(bomb.end.reason).toBe('wall');
    expect((await it.client.run('/bin/true && echo forked')).out).toBe('forked\n');
    expect((await it.client.shell.background()).length).toBeLessThan(5);
  });

  test('survives a fork bomb that is left in the background', async () => {
    await using it = await openBox({ transport, pids: 64 });
    await it.client.run('f() { f | f & }; f', { timeoutMs: 1_000, killGraceMs });
    await expect.poll(async () => (await it.client.run('echo ok', { timeoutMs: 2_000, killGraceMs })).out).toBe('ok\n');
    await expect
      .poll(async () => (await it.client.run('/bin/true && echo forked', { timeoutMs: 2_000, killGraceMs })).out, {
        timeout: 15_000,
      })
      .toBe('forked\n');
  });

  test('survives a command that runs out of memory and is reported as such', async () => {
    await using it = await openBox({ transport, memoryBytes: 64 << 20 });
    await it.client.run('K=1');
    const ended = await it.client.run('tail /dev/zero', { timeoutMs: 15_000 });
    expect(ended).toMatchObject({ code: 137, end: { reason: 'oom' } });
    expect((await it.client.run('echo $K')).out).toBe('1\n');
  });

  test('is replaced if it runs out of memory itself', async () => {
    await using it = await openBox({ transport, memoryBytes: 64 << 20 });
    const ended = await it.client.run('x=x; while :; do x=$x$x$x; done', { timeoutMs: 15_000 });
    expect(ended.code).not.toBe(0);
    expect((await it.client.run('echo ok')).out).toBe('ok\n');
  });

  test('does ordinary work with the least memory that a session can have', async () => {
    await using it = await openBox({ transport, memoryBytes: 32 << 20 });
    const ended = await it.client.run('head -c 20000000 /dev/zero | wc -c; head -c 20000000 /dev/zero', {
      timeoutMs: 15_000,
    });
    expect(ended).toMatchObject({ code: 0, stdout: { length: 20_000_009 } });
  });
});
