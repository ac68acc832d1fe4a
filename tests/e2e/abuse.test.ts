import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { p95, timesWhile } from '../support/flood-figures.ts';
import { isRoot } from '../support/host-leftovers.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

// Tests the effect of one session on its host and on other sessions. docs/sandbox-limits.md lists all abuses and their
// tests.

const MOST_SLOWDOWN = 3;
/** On busy processors the scheduler lets a process wait for some milliseconds, however fast its command is alone. */
const SCHEDULED_WITHIN_MS = 10;
const ROUNDS = 2;
const ROUND_MS = 1_200;
let stack: TestFleet;
beforeAll(async () => {
  const policies = isRoot ? 'docker,bubblewrap,host' : 'docker';
  stack = await startFleet({ env: { SHELLFLEET_POLICIES: policies, SHELLFLEET_HOST_USER: '4722' } });
});
afterAll(() => stack?.[Symbol.asyncDispose]());

describe('a hostile command', () => {
  test.each(isRoot ? (['docker', 'bubblewrap', 'host'] as const) : (['docker'] as const))(
    'slows others at most threefold, or to 10 ms, from a forking, memory-filling %s session',
    async (policy) => {
      const abuser = await stack.fleet.session(`abuser-${policy}`, { policy, limits: { pids: 128 } });
      const other = await stack.fleet.session(`beside-${policy}`, { policy });
      await Promise.all([abuser.run('true'), other.run('true')]);
      const churn = `python3 -c 'while True: bytearray(300 * 2**20)'`;
      const beside: number[] = [];
      const during: number[] = [];
      // Measurements with and without the load alternate, so that other work on the machine slows down both alike.
      for (let round = 0; round < ROUNDS; round += 1) {
        beside.push(...(await timesWhile(other, abuser.run(`sleep ${ROUND_MS / 1_000}`))));
        const abuse = abuser.run(
          `for i in 1 2 3 4; do sh -c 'while :; do :; done' & done; ${churn} & :(){ :|:& };:; wait`,
          {
            timeoutMs: ROUND_MS,
          },
        );
        during.push(...(await timesWhile(other, abuse)));
      }
      console.info(
        `p95 of another ${policy} session: ${p95(beside).toFixed(1)} ms, beside the abuse ${p95(during).toFixed(1)} ms (${during.length} commands)`,
      );
      expect(p95(during)).toBeLessThan(Math.max(SCHEDULED_WITHIN_MS, MOST_SLOWDOWN * p95(beside)));
      await Promise.all([abuser.close(), other.close()]);
    },
  );

  test('opens at most 1024 files, or 4096 once it has raised that limit', async () => {
    const session = await stack.fleet.session('files');
    const opens = `python3 - <<'END'
import os, resource
def most():
    opened = []
    try:
        while True: opened.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as error:
        found = max(opened) + 1, error.strerror
    for fd in opened: os.close(fd)
    return found
print(*most())
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
print(*most())
try: resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))
except ValueError as error: print(error)
END`;
    expect((await session.run(opens)).stdout).toBe(
      '1024 Too many open files\n4096 Too many open files\nnot allowed to raise maximum limit\n',
    );
    await session.close();
  });
});
