import type { Session } from '@shellfleet/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet } from '../support/start-fleet.ts';

let stack: TestFleet;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet({ slots: 40 }));
});
afterAll(() => endInspectedFleet(stack, inspect));

const timedOut = { outcome: 'timeout', exitCode: null, reason: 'wall' } as const;

/**
 * Returns the processes of the session besides its shell, by the process table of the machine. The session has to
 * report the same ones.
 */
async function leftIn(session: Session): Promise<string[]> {
  const left = await inspect.processes(session.id);
  const info = await session.info();
  const reported = info.background.map(({ command }) => command).sort();
  expect({ reported, unknown: info.backgroundUnknown }).toEqual({ reported: left, unknown: undefined });
  return left;
}

describe('a timeout', () => {
  // cloudflare/sandbox-sdk#438: a stuck command never times out, and the session never works again.
  test('ends a stuck command, and the next runs in its shell (cloudflare/sandbox-sdk#438)', async () => {
    const session = await stack.fleet.session('cf-438');
    await session.run('kept=yes; cd /tmp');
    // Script that ignores all signals but SIGKILL, and blocks on a pipe without a writer.
    const stuck = `trap '' INT TERM HUP; mkfifo pipe; sh -c 'trap "" INT TERM HUP; read x < pipe'`;
    const from = performance.now();
    expect(await session.run(stuck, { timeoutMs: 500 })).toMatchObject(timedOut);
    expect(performance.now() - from).toBeLessThan(500 + 1_500 + 1_000);
    expect(await session.run('echo $kept; pwd', { timeoutMs: 2_000 })).toEqual(
      expectedResult('cf-438', { stdout: 'yes\n/tmp\n', shell: { state: 'kept', epoch: 1 } }),
    );
  });

  // daytona#4750: a timeout ends the command, but not the processes that it started.
  test('has ended the whole process tree when the Result arrives (daytona#4750)', async () => {
    const session = await stack.fleet.session('daytona-4750');
    const tree = `
    (trap '' TERM INT; sleep 4321) &
    setsid sh -c 'sleep 4321; :' &
    python3 -c 'import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: time.sleep(4321)
    os._exit(0)
os.wait(); time.sleep(4321)'`;
    expect(await session.run(tree, { timeoutMs: 700 })).toMatchObject(timedOut);
    expect(await leftIn(session)).toEqual([]);
  });

  // E2B#500: the caller gets a timeout error, and the command runs on.
  test('stops the command, and the Result names the limit (E2B#500)', async () => {
    const session = await stack.fleet.session('e2b-500');
    const script = 'while :; do echo tick >> ticks; sleep 0.02; done';
    expect(await session.run(script, { timeoutMs: 300 })).toMatchObject(timedOut);
    const { stdout: then } = await session.run('wc -l < ticks; sleep 0.3');
    expect(Number(then)).toBeGreaterThan(0);
    expect((await session.run('wc -l < ticks')).stdout).toBe(then);
    expect(await leftIn(session)).toEqual([]);
  });

  // claude-code#62978: children of a timed-out pipeline run on for hours.
  test('ends all processes of a pipeline, also in another process session (claude-code#62978)', async () => {
    const session = await stack.fleet.session('claude-62978');
    const pipeline = 'yes | grep --line-buffered -v x | (setsid nohup cat >/dev/null 2>&1 & wait) | tail -f /dev/null';
    expect(await session.run(pipeline, { timeoutMs: 500 })).toMatchObject(timedOut);
    expect(await leftIn(session)).toEqual([]);
    // Background processes of earlier commands stay.
    await session.run('sleep 4321 & :');
    expect(await session.run(pipeline, { timeoutMs: 500 })).toMatchObject(timedOut);
    expect(await leftIn(session)).toEqual(['sleep 4321']);
  });

  // inspect_ai#2605: the time limit applies outside of the container, and a loop inside runs on.
  test('stops an endless loop, which uses no processor time afterwards (inspect_ai#2605)', async () => {
    const session = await stack.fleet.session('inspect-2605');
    expect(await session.run('python3 -c "while True: pass"', { timeoutMs: 500 })).toMatchObject(timedOut);
    expect(await leftIn(session)).toEqual([]);
    const usage = 'cat /sys/fs/cgroup/cpu.stat 2>/dev/null || cat /sys/fs/cgroup/cpuacct/cpuacct.usage';
    const micros = async () => {
      const { stdout } = await session.run(usage);
      const v2 = /usage_usec (\d+)/.exec(stdout)?.[1];
      return v2 === undefined ? Number(stdout) / 1_000 : Number(v2);
    };
    const before = await micros();
    await session.run('sleep 1');
    // A loop that ran on would have used most of that second.
    expect((await micros()) - before).toBeLessThan(400_000);
  });

  // SWE-ReX#29: a timeout returns nothing of what was printed.
  test('returns all output up to it in the Result (SWE-ReX#29)', async () => {
    const session = await stack.fleet.session('swe-rex-29');
    const script = 'for i in 1 2 3; do echo "line $i"; echo "error $i" >&2; done; printf "no end of line"; sleep 4321';
    expect(await session.run(script, { timeoutMs: 500 })).toEqual(
      expectedResult('swe-rex-29', {
        ...timedOut,
        stdout: 'line 1\nline 2\nline 3\nno end of line',
        stderr: 'error 1\nerror 2\nerror 3\n',
        output: expect.any(String) as never,
      }),
    );
  });

  // codex#34742: output that was flushed before the timeout is discarded.
  test('keeps each flushed line, live and in the Result (codex#34742)', async () => {
    const session = await stack.fleet.session('codex-34742');
    const live: string[] = [];
    const result = await session.run(
      'python3 -c "import time\nfor i in range(1000):\n  print(\'stdout tick\', i, flush=True); time.sleep(0.05)"',
      { timeoutMs: 1_000, onOutput: ({ stream, text }) => stream === 'stdout' && live.push(text) },
    );
    expect(result).toMatchObject(timedOut);
    expect(result.stdout).toMatch(/^stdout tick 0\nstdout tick 1\n(stdout tick \d+\n)+$/);
    expect(live.join('')).toBe(result.stdout);
  });

  // langchain#39953: a timeout silently resets the session and does not run the startup commands again.
  test('keeps the shell (langchain#39953)', async () => {
    const session = await stack.fleet.session('langchain-39953', {
      startupCommands: ['activate() { echo active; }', 'cd /tmp'],
    });
    await session.run('count=1');
    expect(await session.run('sleep 4321', { timeoutMs: 300 })).toMatchObject({
      ...timedOut,
      shell: { state: 'kept' },
    });
    expect((await session.run('activate; pwd; echo $count')).stdout).toBe('active\n/tmp\n1\n');
  });

  // langchain#39953: the startup commands do not run again after a timeout that ends the shell.
  test('that ends the shell is reported, and the next runs startup commands (langchain#39953)', async () => {
    const startupCommands = ['activate() { echo active; }', 'cd /tmp'];
    const session = await stack.fleet.session('langchain-39953-fatal', { startupCommands });
    await session.run('count=1');
    const fatal = await session.run("trap '' URG; while :; do :; done", { timeoutMs: 300, killGraceMs: 300 });
    expect(fatal).toMatchObject({
      ...timedOut,
      shell: {
        state: 'lost',
        reason: 'the shell did not come back when it was stopped, and was replaced',
        epoch: 2,
      },
    });
    expect(await session.run('activate; pwd; echo "[$count]"', { timeoutMs: 2_000 })).toEqual(
      expectedResult('langchain-39953-fatal', {
        stdout: 'active\n/tmp\n[]\n',
        shell: { state: 'kept', epoch: 2 },
      }),
    );
    expect(await leftIn(session)).toEqual([]);
  });
});
