// A real terminal in addition to the session's shell. Commands and terminals do not disturb each other.
import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { KeeperTerminal, type KeeperTerminalOptions } from '../support/keeper-terminal.ts';
import { type ImageName, openBox, useBox } from '../support/shell-box.ts';
import { ShellClient } from '../support/shell-client.ts';

describe.each([
  ['bash', 'session', 'socket'],
  ['bash', 'session', 'attach'],
  ['busybox ash', 'busybox', 'socket'],
] as [string, ImageName, 'socket' | 'attach'][])('a terminal in %s (%s over %s)', (name, image, transport) => {
  const it = useBox({ image, transport });
  const opened: KeeperTerminal[] = [];
  const open = (options: KeeperTerminalOptions = {}) => {
    const terminal = new KeeperTerminal(it.client.shell, options);
    opened.push(terminal);
    return terminal;
  };
  afterEach(async () => {
    for (const terminal of opened.splice(0)) {
      terminal.close();
      await terminal.ends();
      terminal.close();
    }
  });

  test('is an interactive shell in the directory of the session', async () => {
    await it.client.run('cd /proc');
    const terminal = open({ rows: 33, columns: 101, env: { GIVEN: 'by the session' } });
    terminal.type('tty; stty size; pwd; echo "<$GIVEN $TERM>"; case $- in *i*) echo inter""active;; esac\n');
    await terminal.sees(/\/dev\/pts\/\d+/);
    await terminal.sees('33 101');
    await terminal.sees('/proc');
    await terminal.sees('<by the session xterm>');
    await terminal.sees('interactive');
  });

  test('reports a new size with SIGWINCH', async () => {
    const terminal = open();
    terminal.type(`sh -c 'trap "stty size" WINCH; echo re""ady; while :; do sleep 0.05; done'\n`);
    await terminal.sees('ready');
    terminal.resize(40, 132);
    await terminal.sees('40 132');
  });

  test('ends the program in the foreground at Ctrl-C, and nothing else', async () => {
    const running = it.client.run('sleep 1; echo done');
    const terminal = open();
    await terminal.sees('$ ');
    terminal.type(`sh -c 'echo in""side; exec sleep 1000'\n`);
    await terminal.sees('inside');
    terminal.type('\x03');
    await terminal.sees('$ ');
    terminal.type('echo "still $((40 + 2))"\n');
    await terminal.sees('still 42');
    expect(await running).toMatchObject({ out: 'done\n', code: 0, state: 'kept' });
  });

  test('runs an interactive Python', async () => {
    if (name !== 'bash') return expect((await it.client.run('command -v python3')).out).toBe('');
    const terminal = open();
    terminal.type('python3 -q\n');
    await terminal.sees('>>> ');
    terminal.type('print(6 * 7 * 1000)\n');
    await terminal.sees('42000');
    terminal.type('\x04');
    await terminal.sees('$ ');
  });

  test('reports the exit code of its shell after all of its output', async () => {
    const terminal = open();
    terminal.type('seq 1 20000 | tr "\\n" " "; echo en""d; exit 7\n');
    expect(await terminal.ends()).toEqual({ reason: 'exited', exitCode: 7, signal: 0, problem: '' });
    expect(terminal.shown).toContain(' 19999 20000 end');
  });

  test("survives a timeout of the session's command, and is no background process", async () => {
    const command = it.client.run('sleep 1000', { timeoutMs: 900, killGraceMs: 600 });
    const terminals = [open(), open()];
    for (const terminal of terminals) terminal.type(`sh -c 'echo in""side; exec sleep 1001'\n`);
    for (const terminal of terminals) await terminal.sees('inside');
    expect((await command).end.reason).toBe('wall');
    expect(await it.client.shell.background()).toEqual([]);
    for (const terminal of terminals) {
      terminal.type('\x1a');
      await terminal.sees(/[Ss]topped/);
      expect(terminal.end).toBeUndefined();
    }
  });

  test('ends its programs when it is closed, whatever signals they ignore', async () => {
    const terminal = open();
    terminal.type('sh -c "trap \\"\\" HUP TERM INT; echo de""af; while :; do sleep 1; done"\n');
    await terminal.sees('deaf');
    terminal.close();
    expect((await terminal.ends())?.reason).toBe('hung-up');
    expect((await it.client.run("ps -o args 2>/dev/null | grep -c '[w]hile :' ")).out.trim()).toBe('0');
  });
});

describe('terminals over a socket', () => {
  const it = useBox();

  test('do not affect each other or a command, and a fifth is refused', async () => {
    const terminals = [1, 2, 3, 4].map(() => new KeeperTerminal(it.client.shell));
    const running = it.client.run('sleep 0.5; echo command');
    for (const [index, terminal] of terminals.entries()) terminal.type(`echo "this is $((${index} + 100))"\n`);
    await Promise.all(terminals.map((terminal, index) => terminal.sees(`this is ${index + 100}`)));
    expect(await new KeeperTerminal(it.client.shell).ends()).toEqual({
      reason: 'too-many',
      exitCode: null,
      signal: 0,
      problem: 'the session has as many terminals as it may have',
    });
    expect((await running).out).toBe('command\n');
    for (const terminal of terminals) terminal.type('exit\n');
    for (const terminal of terminals) {
      expect(await terminal.ends()).toMatchObject({ reason: 'exited', exitCode: 0 });
      terminal.close();
    }
    const next = new KeeperTerminal(it.client.shell);
    await next.sees('$ ');
    next.close();
  });

  test('make a program wait while its output is not acknowledged', async () => {
    const terminal = new KeeperTerminal(it.client.shell, { acks: false });
    terminal.type('stty -opost; echo st""art; seq 1 100000; echo al""l\n');
    await it.client.run('sleep 0.5');
    expect(terminal.shown.length).toBeLessThanOrEqual(64 << 10);
    let seen = '';
    while (!seen.includes('\nall')) {
      seen += terminal.shown;
      terminal.shown = '';
      terminal.ack();
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const numbers = seen.slice(seen.indexOf('start\n') + 6, seen.indexOf('\nall') + 1);
    expect(numbers).toBe(Array.from({ length: 100_000 }, (_, index) => `${index + 1}\n`).join(''));
    terminal.close();
    await terminal.ends();
    terminal.close();
  });

  test('type repeated input once, and delay input that is not read', async () => {
    const terminal = new KeeperTerminal(it.client.shell);
    const script = 'stty -echo -icanon; echo re""ady; head -c 200000 | md5sum\n';
    terminal.type(script);
    await terminal.sees('ready');
    const text = Array.from({ length: 20_000 }, (_, index) => String(index).padStart(10)).join('');
    const start = script.length;
    // The sender always continues at the offset that is reported as typed.
    while (terminal.typed < start + text.length) {
      const at = Math.max(0, terminal.typed - start - 1_000);
      terminal.typeAt(start + at, text.slice(at, at + 50_000));
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    await terminal.sees(createHash('md5').update(text).digest('hex'));
    terminal.close();
    await terminal.ends();
    terminal.close();
  });
});

describe('a terminal after a change of the worker', () => {
  test('continues without losing output or repeating input', async () => {
    await using it = await openBox();
    const first = new KeeperTerminal(it.client.shell);
    await first.sees('$ ');
    first.type('X=kept; echo on""e\n');
    await first.sees('one');
    await first.sees('$ ');
    const stored = first.offset;
    it.client.shell.disconnect();
    const shell = await it.box.connect();
    new ShellClient(shell);
    const next = new KeeperTerminal(shell, { id: first.id, from: stored, resumeOnly: true });
    next.typeAt(0, 'X=kept; echo on""e\necho "$X two"\n');
    await next.sees('kept two');
    expect(next.shown).not.toContain('one');
    next.close();
    await next.ends();
    next.close();
    expect(await new KeeperTerminal(shell, { id: first.id, resumeOnly: true }).ends()).toMatchObject({
      reason: 'unknown',
    });
  });
});
