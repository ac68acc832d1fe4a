import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { root } from '../steps.ts';

// Records when each part of `npm test` ran, and the processor time of the machine by cause.

const path = join(root, '.cache/test-record.json');
const SAMPLE_MS = 1_000;
/** Clock ticks of /proc in a second, equal on every processor that Node supports. */
const TICKS = 100;

/** Causes with patterns. A process has the first cause whose pattern matches its command line. */
const causes: [cause: string, commandLine: RegExp][] = [
  ['workers', /\/worker\.mjs|apps\/worker\/(src|dist|bin)\/main/],
  ['tool calls', /apps\/worker\/src\/tools\//],
  ['command lines', /\/cli\.mjs|apps\/producer\//],
  ['checks', /\btsc\b|\bbiome\b|\bknip\b|\bnx\b|check-c\.ts/],
  ['test files', /\bvitest\b/],
  ['Redis', /^redis-server/],
  ['engine', /\b(dockerd|containerd\S*|runc|docker-proxy|docker-init)\b/],
];
const REST = 'sandboxes and the rest';
const UNSEEN = 'the kernel, and processes too short to be seen';

export interface TestRecord {
  /** Start and end of each part, in ms since the start of the run. */
  parts: Record<string, { from: number; to: number }>;
  /** Processor seconds by cause, of everything on the machine. */
  processorSeconds: Record<string, number>;
}

export async function readTestRecord(): Promise<TestRecord | undefined> {
  const text = await readFile(path, 'utf8').catch(() => undefined);
  return text === undefined ? undefined : JSON.parse(text);
}

/** Records one run of `npm test`, and writes the record when disposed of. */
export function recordRun() {
  const startedAt = Date.now();
  const parts: TestRecord['parts'] = {};
  const sampling = new AbortController();
  const sampled = sample(sampling.signal);
  return {
    async part<T>(name: string, work: () => Promise<T>): Promise<T> {
      const from = Date.now() - startedAt;
      return work().finally(() => {
        parts[name] = { from, to: Date.now() - startedAt };
      });
    },
    async [Symbol.asyncDispose]() {
      sampling.abort();
      const record: TestRecord = { parts, processorSeconds: await sampled };
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, `${JSON.stringify(record, null, 2)}\n`);
    },
  };
}

/** Samples the processor times of all processes until the signal. */
async function sample(signal: AbortSignal): Promise<TestRecord['processorSeconds']> {
  const busyBefore = await readBusyTicks();
  const seen = new Map<string, { cause: string; first: number; last: number }>();
  for (let isFirst = true; ; isFirst = false) {
    for (const { id, pid, ticks } of await readProcesses()) {
      const known = seen.get(id);
      // A process that has just been forked still has the command line of its parent.
      const cause = known === undefined || known.cause === REST ? await causeOf(pid) : known.cause;
      seen.set(id, { cause, first: known?.first ?? (isFirst ? ticks : 0), last: ticks });
    }
    if (signal.aborted) break;
    await delay(SAMPLE_MS, undefined, { signal }).catch(() => {});
  }
  const seconds: Record<string, number> = {};
  for (const { cause, first, last } of seen.values()) seconds[cause] = (seconds[cause] ?? 0) + (last - first) / TICKS;
  const all = Object.values(seconds).reduce((sum, some) => sum + some, 0);
  return { ...seconds, [UNSEEN]: Math.max(0, ((await readBusyTicks()) - busyBefore) / TICKS - all) };
}

/** Returns the ticks in which the processors were neither idle nor used by other machines. */
async function readBusyTicks(): Promise<number> {
  const [, ...fields] = ((await readFile('/proc/stat', 'utf8').catch(() => '')).split('\n')[0] ?? '').split(/\s+/);
  const [user = 0, nice = 0, system = 0, , , irq = 0, softIrq = 0] = fields.map(Number);
  return user + nice + system + irq + softIrq;
}

async function readProcesses(): Promise<{ id: string; pid: string; ticks: number }[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const read = pids.map(async (pid) => {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
    if (stat === undefined) return [];
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // utime, stime and starttime are fields 14, 15 and 22 of the line, which begins here with the third.
    const [userTicks, systemTicks, startedAt] = [fields[11], fields[12], fields[19]];
    return [{ id: `${pid} ${startedAt}`, pid, ticks: Number(userTicks) + Number(systemTicks) }];
  });
  return (await Promise.all(read)).flat();
}

async function causeOf(pid: string): Promise<string> {
  const commandLine = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ');
  return causes.find(([, pattern]) => pattern.test(commandLine))?.[0] ?? REST;
}

/** Returns the table of a record: parts with start, end and length, and causes with their share of all processors. */
export function renderRecord({ parts, processorSeconds }: TestRecord): string {
  const column = (seconds: number) => seconds.toFixed(1).padStart(7);
  const rows = Object.entries(parts).map(
    ([name, { from, to }]) => `${column(from / 1_000)} ${column(to / 1_000)} ${column((to - from) / 1_000)}  ${name}`,
  );
  const wall = Math.max(1, ...Object.values(parts).map(({ to }) => to)) / 1_000;
  const used = Object.entries(processorSeconds)
    .toSorted(([, a], [, b]) => b - a)
    .map(([cause, seconds]) => {
      const share = `${((100 * seconds) / (wall * availableParallelism())).toFixed(0)} %`.padStart(7);
      return `${column(seconds)} ${share}  ${cause}`;
    });
  return ['  start     end    time  part', ...rows, '', '    CPU   share  cause', ...used].join('\n');
}
