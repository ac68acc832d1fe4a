import { setTimeout as delay } from 'node:timers/promises';
import type { Command, Session } from '@shellfleet/client';
import { describe, expect, test } from 'vitest';
import { inspectFleet } from '../support/inspect-fleet.ts';
import { startOwnRedis } from '../support/own-redis.ts';
import { createRandom } from '../support/random.ts';
import { residentBytes } from '../support/resident-bytes.ts';
import { slotsFor } from '../support/slots-for.ts';
import { startFleet, type TestWorker } from '../support/start-fleet.ts';
import { until } from '../support/until.ts';

// The figures of docs/reliability.md. A run of all tests takes small ones, which show that nothing is lost. Times count
// on a quiet machine only: `SHELLFLEET_FIGURES=full npx vitest run --project chaos
// tests/chaos/reliability-figures.test.ts`

const FULL = process.env.SHELLFLEET_FIGURES === 'full';
const TIMEOUT_MS = FULL ? 900_000 : 240_000;
const size = <T>(small: T, full: T): T => (FULL ? full : small);
const SMALL_SESSION = { limits: { memoryBytes: 64 << 20 } };

function report(what: string, figures: Record<string, number | string>): void {
  const text = Object.entries(figures).map(([name, value]) => `${name} ${value}`);
  console.info(`figure: ${what}: ${text.join(', ')}`);
}

function percentile(values: number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN);
}

const msSince = (from: number): number => Math.round(performance.now() - from);

describe('a fleet under load', () => {
  test(
    'loses, doubles and reorders no command when a worker is killed every 2 s',
    async () => {
      const [sessions, commands, workers] = size([16, 10, 2], [200, 50, 4]);
      await using stack = await startFleet({ workers, slots: Math.ceil(sessions / workers) + 8 });
      await using inspect = inspectFleet(stack);
      const random = createRandom(1);
      const over = new AbortController();
      let kills = 0;
      const starting = new Map<TestWorker, Promise<void>>();
      const killing = (async () => {
        while (!over.signal.aborted) {
          await delay(2_000);
          const worker = random.pick(stack.workers as [TestWorker]);
          await worker.kill();
          kills += 1;
          // The next kill may come before the restarted worker is ready.
          starting.set(
            worker,
            worker.start().catch(() => {}),
          );
        }
        // A worker ends its sessions on request only once it is ready.
        await Promise.all(starting.values());
      })();
      const from = performance.now();
      const drive = async (id: string): Promise<string[]> => {
        const session = await stack.fleet.session(id, SMALL_SESSION);
        const sent: Command[] = [];
        for (let n = 0; n < commands; n += 1)
          sent.push(await session.submit(`echo ${n} >> /tmp/ran; echo ${n}; sleep 0.0${n % 10}`));
        const results = await Promise.all(sent.map((command) => command.result()));
        const { stdout } = await session.run('cat /tmp/ran');
        const problems = await inspect.broken(
          id,
          sent.map((command) => command.id),
        );
        const expected = Array.from({ length: commands }, (_, n) => `${n}\n`);
        if (stdout !== expected.join('')) problems.push(`${id}: ran ${JSON.stringify(stdout)}`);
        for (const [n, result] of results.entries()) {
          if (result.outcome !== 'success' || result.stdout !== expected[n] || result.shell.state === 'lost')
            problems.push(`${id}: ${n} ended as ${JSON.stringify(result)}`);
        }
        return problems;
      };
      const problems = await Promise.all(Array.from({ length: sessions }, (_, index) => drive(`s${index}`)));
      over.abort();
      await killing;
      report('worker killed every 2 s', {
        sessions,
        commands: sessions * commands,
        kills,
        seconds: msSince(from) / 1_000,
      });
      expect(problems.flat()).toEqual([]);
      await stack.end();
      await expect.poll(() => inspect.containers()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    'answers in every shell again after a worker restart, and loses none',
    async () => {
      const [restarts, sessions] = size([2, 4], [20, 8]);
      await using stack = await startFleet();
      const worker = stack.workers[0] as TestWorker;
      const opened = await Promise.all(
        Array.from({ length: sessions }, (_, index) => stack.fleet.session(`s${index}`)),
      );
      await Promise.all(opened.map((session) => session.run('kept=yes')));
      const times: number[] = [];
      for (let restart = 0; restart < restarts; restart += 1) {
        await worker.kill();
        const from = performance.now();
        const started = worker.start();
        const answers = await Promise.all(
          opened.map(async (session) => {
            const { stdout } = await session.run('echo $kept');
            times.push(performance.now() - from);
            return stdout;
          }),
        );
        await started;
        expect(answers).toEqual(opened.map(() => 'yes\n'));
      }
      const [p50, p95] = [percentile(times, 0.5), percentile(times, 0.95)];
      report('worker restart, until a shell answers', { answers: times.length, 'p50 ms': p50, 'p95 ms': p95 });
    },
    TIMEOUT_MS,
  );

  test(
    'reports a dead host in streams, and keeps shells when it is back in time',
    async () => {
      const times: number[] = [];
      await using stack = await startFleet({ workers: 2 });
      await using inspect = inspectFleet(stack);
      for (let round = 0; round < size(1, 10); round += 1) {
        const session = await stack.fleet.session(`s${round}`);
        const { hostId } = await session.run('true');
        const holder = stack.workers.find((worker) => worker.hostId === hostId) as TestWorker;
        await holder.kill();
        const from = performance.now();
        await until(
          () => inspect.events(session.id),
          (events) => events.some(({ type }) => type === 'host.unreachable'),
        );
        times.push(performance.now() - from);
        await holder.start();
        expect(await session.run('true')).toMatchObject({ outcome: 'success', shell: { state: 'kept' } });
      }
      report('dead host, until it is reported', {
        rounds: times.length,
        'p50 ms': percentile(times, 0.5),
        'most ms': percentile(times, 1),
      });
    },
    TIMEOUT_MS,
  );

  test(
    'goes on in every session after a Redis restart, and loses nothing acknowledged',
    async () => {
      const [sessions, restarts] = size([6, 1], [32, 5]);
      await using redis = await startOwnRedis('--appendonly', 'yes', '--appendfsync', 'always');
      await using stack = await startFleet({ redisUrl: redis.url, workers: 2, slots: slotsFor(sessions) });
      await using inspect = inspectFleet(stack);
      const opened = await Promise.all(
        Array.from({ length: sessions }, (_, index) => stack.fleet.session(`s${index}`, SMALL_SESSION)),
      );
      await Promise.all(opened.map((session) => session.run('n=0')));
      const sent = new Map<string, string[]>(opened.map(({ id }) => [id, []]));
      const ends: { id: string; at: number }[] = [];
      const over = new AbortController();
      const load = opened.map(async (session) => {
        while (!over.signal.aborted) {
          const command = await submitAgain(session, 'n=$((n + 1)); echo $n >> /tmp/ran');
          if (command === undefined) continue;
          sent.get(session.id)?.push(command.id);
          await command.result();
          ends.push({ id: session.id, at: performance.now() });
        }
      });
      const times: number[] = [];
      for (let restart = 0; restart < restarts; restart += 1) {
        await delay(2_000);
        await redis.kill();
        await redis.start();
        const from = performance.now();
        const resumed = () => new Set(ends.filter(({ at }) => at > from).map(({ id }) => id)).size;
        await until(resumed, (count) => count === sessions, 60_000);
        times.push(performance.now() - from);
      }
      over.abort();
      await Promise.all(load);
      report('Redis restart under load, until every session has gone on', {
        sessions,
        restarts,
        'p50 ms': percentile(times, 0.5),
        'most ms': percentile(times, 1),
      });
      for (const session of opened) {
        const accepted = sent.get(session.id) ?? [];
        expect(await inspect.broken(session.id, accepted)).toEqual([]);
        const { stdout } = await session.run('cat /tmp/ran');
        const counted = stdout.split('\n').slice(0, -1).map(Number);
        expect(counted).toEqual(counted.map((_, index) => index + 1));
        expect(counted.length).toBeGreaterThanOrEqual(accepted.length);
      }
    },
    TIMEOUT_MS,
  );
});

/** Submits a command. Undefined when it was refused because Redis is away; the caller then sends another one. */
async function submitAgain(session: Session, script: string): Promise<Command | undefined> {
  return session.submit(script).catch(async () => {
    await delay(100);
    return undefined;
  });
}

describe('readers', () => {
  test(
    'of one command have the same bytes despite random resumes, with flat memory',
    async () => {
      const [readers, lines] = size([100, 20_000], [1_000, 40_000]);
      await using stack = await startFleet();
      const worker = stack.workers[0] as TestWorker;
      const session = await stack.fleet.session('read', { output: { streamBytes: 64 << 20 } });
      await session.run('true');
      const text = Array.from({ length: lines }, (_, index) => `${index + 1}\n`).join('');
      const command = await session.submit(`for part in 1 2 3 4; do seq 1 ${lines}; sleep 1; done`);
      const expected = text.repeat(4);
      const before = { reader: await residentBytes(process.pid), worker: await residentBytes(worker.pid) };
      let most = { reader: 0, worker: 0 };
      const watching = setInterval(async () => {
        const now = { reader: await residentBytes(process.pid), worker: await residentBytes(worker.pid) };
        most = { reader: Math.max(most.reader, now.reader), worker: Math.max(most.worker, now.worker) };
      }, 200);
      const wrong: string[] = [];
      const read = async (reader: number) => {
        const random = createRandom(reader);
        let position = 0;
        let after: string | undefined;
        for (let ended = false; !ended; ) {
          ended = true;
          for await (const chunk of command.output(after === undefined ? {} : { after })) {
            // Each chunk is compared at once, so that no reader keeps its output.
            if (expected.slice(position, position + chunk.text.length) !== chunk.text)
              wrong.push(`${reader} at ${position}`);
            position += chunk.text.length;
            after = chunk.id;
            if (random.chance(0.9)) continue;
            ended = false;
            break;
          }
          if (!ended) await delay(random.below(200));
        }
        if (position !== expected.length) wrong.push(`${reader} has ${position} of ${expected.length}`);
      };
      await Promise.all(Array.from({ length: readers }, (_, reader) => read(reader)));
      clearInterval(watching);
      const mib = (bytes: number) => Math.round(bytes / 2 ** 20);
      report('readers of one command', {
        readers,
        'MB each': Math.round(expected.length / 1e6),
        'reader MiB before': mib(before.reader),
        'reader MiB most': mib(most.reader),
        'worker MiB before': mib(before.worker),
        'worker MiB most': mib(most.worker),
      });
      expect(wrong).toEqual([]);
      expect(await command.result()).toMatchObject({ outcome: 'success', totals: { stdoutBytes: expected.length } });
      expect(most.worker - before.worker).toBeLessThan(128 * 2 ** 20);
    },
    TIMEOUT_MS,
  );
});

describe('a fleet at ten times its capacity', () => {
  test(
    'rejects nothing, loses nothing and runs nothing twice',
    async () => {
      const [slots, seconds] = size([3, 8], [8, 120]);
      await using stack = await startFleet({ slots });
      await using inspect = inspectFleet(stack);
      const until = Date.now() + seconds * 1_000;
      let [commands, rejected, waited] = [0, 0, 0];
      const problems: string[] = [];
      const user = async (index: number) => {
        // Sessions are closed in turn, so that each frees its slot for one that waits.
        for (let turn = 0; turn === 0 || Date.now() < until; turn += 1) {
          const id = `u${index}-${turn}`;
          const session = await stack.fleet.session(id, SMALL_SESSION);
          const sent = await Promise.all([1, 2, 3].map((n) => session.submit(`echo ${n} >> /tmp/ran; cat /tmp/ran`)));
          waited = Math.max(waited, (await session.info()).position ?? 0);
          const results = await Promise.all(sent.map((command) => command.result()));
          commands += results.length;
          if (results.at(-1)?.stdout !== '1\n2\n3\n') problems.push(`${id}: ${JSON.stringify(results)}`);
          problems.push(
            ...(await inspect.broken(
              id,
              sent.map((command) => command.id),
            )),
          );
          await session.close();
        }
      };
      const users = Array.from({ length: 10 * slots }, (_, index) =>
        user(index).catch((error: unknown) => {
          rejected += 1;
          problems.push(String(error));
        }),
      );
      await Promise.all(users);
      report('ten times over capacity', {
        slots,
        users: 10 * slots,
        seconds,
        commands,
        rejected,
        'longest line': waited,
      });
      expect(problems).toEqual([]);
      await expect.poll(() => inspect.containers()).toEqual([]);
    },
    TIMEOUT_MS,
  );
});
