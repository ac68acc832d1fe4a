import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { endInspectedFleet, type InspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import { until } from '../support/until.ts';

const KILLS = 12;
const SESSIONS = 36;
const AT_ONCE = 3;

let directory: string;
let it: InspectedFleet;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-pools-'));
  const path = join(directory, 'config.yaml');
  await writeFile(path, 'pools: [{ min: 4, max: 8 }]\n');
  it = await startInspectedFleet({ slots: 16, env: { SHELLFLEET_CONFIG: path } });
});
afterAll(async () => {
  await endInspectedFleet(it?.stack, it?.inspect);
  await rm(directory, { recursive: true });
});

describe('a pool whose containers and worker are killed while sessions open', () => {
  test('gives each container to one session, and every session runs or reports the loss', async () => {
    const { stack, worker, inspect } = it;
    const names: string[] = [];
    const failures: (string | undefined)[] = [];
    let next = 0;
    const openOthers = async (): Promise<void> => {
      while (next < SESSIONS) {
        const session = await stack.fleet.session(`s${next++}`);
        const { outcome, stdout, error } = await session.run('hostname', { retry: 'idempotent' });
        if (outcome === 'success') names.push(stdout);
        else failures.push(outcome === 'error' ? error?.code : outcome);
        await session.close();
      }
    };
    let killed = 0;
    const killOthers = async (): Promise<void> => {
      for (; killed < KILLS && next < SESSIONS; killed++) {
        if (killed === KILLS / 2) {
          await worker.kill();
          await worker.start();
        }
        const opened = next;
        const running = (await inspect.containers()).filter(({ state }) => state === 'running');
        const [victim] = killed % 2 === 0 ? running : running.toReversed();
        if (victim !== undefined)
          await inspect.docker
            .getContainer(victim.id)
            .kill()
            .catch(() => {});
        await until(
          () => next,
          (now) => now > opened || now >= SESSIONS,
        );
      }
    };
    await Promise.all([killOthers(), ...Array.from({ length: AT_ONCE }, openOthers)]);
    expect([killed, names.length + failures.length, new Set(names).size]).toEqual([KILLS, SESSIONS, names.length]);
    // With the worker, all of its running entries may be lost.
    expect(failures.length).toBeLessThanOrEqual(KILLS + AT_ONCE);
    expect(failures.filter((code) => !['lost', 'CONTAINER_LOST', 'SESSION_START_FAILED'].includes(code ?? ''))).toEqual(
      [],
    );
    await until(
      async () => (await stack.fleet.hosts())[0]?.pools?.at(0)?.ready ?? 0,
      (ready) => ready >= 4,
    );
  });
});
