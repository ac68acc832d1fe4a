// `shellfleet attach` at a real terminal, used as a person would.
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { FleetCli } from '../support/fleet-cli.ts';
import { LocalTerminal } from '../support/local-terminal.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

const SCREEN = `
import curses
def main(screen):
    key = -1
    while key != ord('q'):
        screen.erase()
        screen.addstr(2, 5, '%dx%d' % screen.getmaxyx())
        if screen.getmaxyx() == (33, 90): screen.addstr(3, 5, 'followed')
        if key == curses.KEY_UP: screen.addstr(4, 5, 'up')
        key = screen.getch()
curses.wrapper(main)
`;

let stack: TestFleet;
beforeAll(async () => {
  stack = await startFleet();
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('attach', () => {
  test('computes at a Python prompt, follows the window’s size, and returns the shell’s exit code', async () => {
    await using local = LocalTerminal.start(stack, ['attach', 'python']);
    await local.sees('$ ');
    local.type('stty size\r');
    await local.sees('30 100');
    await local.resize(41, 133);
    local.type('python3 -q\r');
    await local.sees('>>> ');
    local.type('import os; tuple(os.get_terminal_size())\r');
    await local.sees('(133, 41)');
    local.type('6 * 7 * 1000\r');
    await local.sees('42000');
    local.type('\x04');
    await local.sees('$ ');
    local.type('exit 7\r');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([7, before]);
  });

  test('lets vi open a file, take text and write it', async () => {
    const session = await stack.fleet.session('vi', { image: inject('testImages').busybox, cwd: '/tmp' });
    await session.files.write('/tmp/letter', 'Dear fleet,\n');
    await using local = LocalTerminal.start(stack, ['attach', 'vi']);
    await local.sees('$ ');
    local.type('vi letter\r');
    await local.sees('Dear fleet,');
    local.type('oall is well — é.');
    await local.sees('is well — é.');
    // Without a pause, Escape and the next byte would be read as another key.
    local.type('\x1b');
    await local.sees('- letter');
    local.type(':wq\r');
    await local.sees('$ ');
    local.type('exit\r');
    expect((await local.left()).exitCode).toBe(0);
    expect(await session.files.readText('/tmp/letter')).toBe('Dear fleet,\nall is well — é.\n');
  });

  test('lets a full-screen program draw, read keys and follow the window', async () => {
    const session = await stack.fleet.session('screen');
    await session.files.write('/tmp/screen.py', SCREEN);
    await using local = LocalTerminal.start(stack, ['attach', 'screen']);
    await local.sees('$ ');
    local.type('python3 /tmp/screen.py\r');
    await local.sees('30x100');
    await local.resize(33, 90);
    local.type('x');
    await local.sees('followed');
    local.type('\u001bOA');
    await local.sees('up');
    local.type('q');
    await local.sees('$ ');
    local.type('exit\r');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([0, before]);
  });

  test('ends the foreground program on Ctrl-C, and neither the terminal nor the session', async () => {
    const session = await stack.fleet.session('interrupted');
    const running = session.run('sleep 2; echo done');
    await using local = LocalTerminal.start(stack, ['attach', 'interrupted']);
    await local.sees('$ ');
    local.type('echo in""side; sleep 1000\r');
    await local.sees('inside');
    local.type('\x03');
    await local.sees('$ ');
    local.type('echo "still $((40 + 2))"\r');
    await local.sees('still 42');
    expect(await running).toMatchObject({ outcome: 'success', stdout: 'done\n' });
    local.type('exit\r');
    expect((await local.left()).exitCode).toBe(0);
  });

  test('exits with 0 and restores the terminal on the detach keys; the session continues', async () => {
    const session = await stack.fleet.session('detached');
    await session.run('X=kept');
    await using local = LocalTerminal.start(stack, ['attach', 'detached']);
    await local.sees('$ ');
    local.type('printf "\\033[?1049h"; echo on""scre\r');
    await local.sees('onscre');
    local.type('\x10\x11');
    await local.sees('\u001b[?1049l');
    await local.sees('Left; the terminal is closed, and the session goes on.');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([0, before]);
    expect(await session.run('echo $X; ls /dev/pts')).toMatchObject({ stdout: 'kept\nptmx\n' });
  });

  test('accepts other detach keys, and refuses invalid detach keys', async () => {
    await using local = LocalTerminal.start(stack, ['attach', '--detach-keys', 'ctrl-],q', 'detached']);
    await local.sees('$ ');
    local.type('\x1dq');
    expect((await local.left()).exitCode).toBe(0);
    const refused = await new FleetCli(stack).text(['attach', '--detach-keys', 'ctrl-,', 'x']);
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining('Give keys such as ctrl-p,ctrl-q')]);
  });

  test.each(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)(
    'restores the terminal after %s, and returns an exit code of its own',
    async (signal) => {
      await using local = LocalTerminal.start(stack, ['attach', 'signalled']);
      await local.sees('$ ');
      await local.signal(signal);
      const { exitCode, before, after } = await local.left();
      expect([exitCode, after]).toEqual([{ SIGTERM: 143, SIGHUP: 129, SIGINT: 130 }[signal], before]);
    },
  );

  test('ends with a message when the session ends', async () => {
    const session = await stack.fleet.session('closes');
    await using local = LocalTerminal.start(stack, ['attach', 'closes']);
    await local.sees('$ ');
    await session.close();
    await local.sees('The terminal was hung up');
    const { exitCode, before, after } = await local.left();
    expect([exitCode, after]).toEqual([129, before]);
  });

  test('keeps two terminals of one session apart', async () => {
    await using first = LocalTerminal.start(stack, ['attach', 'two']);
    await first.sees('$ ');
    await using second = LocalTerminal.start(stack, ['attach', 'two']);
    await second.sees('$ ');
    first.type('X=first; echo "$X $((1 + 1))"\r');
    second.type('echo "<$X> $((2 + 2))"\r');
    await first.sees('first 2');
    await second.sees('<> 4');
  });

  test('is refused with a message without a terminal', async () => {
    expect(await new FleetCli(stack).text(['attach', 'x'])).toEqual({
      exitCode: 2,
      stdout: '',
      stderr:
        'shellfleet: `attach` needs a terminal, and stdin or stdout is not one. For a script use `shellfleet exec x -- SCRIPT`. (COMMAND_INVALID)\n',
    });
  });
});
