import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { keysWithoutExpiry } from '../support/invariants.ts';
import { slotsFor } from '../support/slots-for.ts';
import { startFleet } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// Promise: a session that has ended leaves no container, no directory, no process and no key without an expiry.

const SESSIONS = 100;
const AT_A_TIME = 8;
const SLOTS = slotsFor(AT_A_TIME);

describe('a host', () => {
  test(`keeps nothing of ${SESSIONS} sessions in a row, however they end`, async () => {
    const directory = await mkdtemp(join(tmpdir(), 'sf-churn-'));
    const stack = await startFleet({ slots: SLOTS, env: { SHELLFLEET_STATE_DIR: directory } });
    await using inspect = inspectFleet(stack);
    try {
      const worker = stack.workers[0]?.pid ?? -1;
      await stack.fleet.run('true');
      const withoutSessions = () =>
        until(
          () => treeOf(directory),
          // The host writes its audit within a second.
          (tree) => !tree.some((path) => /\/s\/[^.]/.test(path)) && tree.some((path) => path.endsWith('.jsonl')),
        );
      const before = { directory: await withoutSessions(), descriptors: await countDescriptors(worker) };
      let next = 0;
      const live = async () => {
        for (let index = next++; index < SESSIONS; index = next++) {
          const session = await stack.fleet.session(`churn-${index}`, { limits: { memoryBytes: 64 << 20 } });
          const last = await session.submit(
            ['echo $$; sleep 4321 &', 'kill -9 $$', 'sleep 4321', 'exit 3'][index % 4] as string,
          );
          if (index % 4 !== 2) await last.result();
          if (index % 8 === 1) await session.restart();
          await session.close();
          await last.result();
        }
      };
      await Promise.all(Array.from({ length: AT_A_TIME }, live));
      await until(
        () => stack.fleet.hosts(),
        ([host]) => host?.free === SLOTS,
      );
      await expect.poll(() => inspect.containers()).toEqual([]);
      expect(await withoutSessions()).toEqual(before.directory);
      expect(await keepersBelow(directory)).toEqual([]);
      const sessions = (await keysWithoutExpiry(inspect.redis, `${stack.keyspace}:{default:`)).sort();
      expect(sessions).toEqual([]);
      const indexed = async () => {
        const members = await inspect.redis.zrange(`${stack.keyspace}:{x0}:index`, '0', '-1');
        const keys = members.map((member) => sessionKeys(stack.keyspace, 'default', member.slice('default:'.length)));
        return Promise.all(
          keys.map(async ({ member, state }) => ({ member, state: await inspect.redis.hgetall(state) })),
        );
      };
      await expect.poll(indexed).toEqual([]);
      await expect.poll(() => inspect.redis.hgetall(`${stack.keyspace}:{x0}:owners`)).toEqual({});
      // Idle connections to the engine end later than the last session.
      await expect.poll(() => countDescriptors(worker)).toBeLessThan(before.descriptors + 10);
    } finally {
      await stack[Symbol.asyncDispose]();
      await rm(directory, { recursive: true, force: true });
    }
  }, 240_000);
});

async function treeOf(directory: string): Promise<string[]> {
  return (await readdir(directory, { recursive: true })).sort();
}

async function countDescriptors(pid: number): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

/** Returns the processes of this machine that were started from the directory, or work in it. */
async function keepersBelow(directory: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const [command, cwd] = await Promise.all([
        readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => ''),
        readlink(`/proc/${pid}/cwd`).catch(() => ''),
      ]);
      return (command.includes(directory) || cwd.startsWith(directory)) && Number(pid) !== process.pid ? [command] : [];
    }),
  );
  return found.flat();
}
