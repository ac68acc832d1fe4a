import { loadavg } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { Session, SessionSpec } from '@shellfleet/client';
import type { Pod } from '../support/kubernetes/kubelet/pod-status.ts';
import { PodNamespaces } from '../support/kubernetes/processes/pod-namespaces.ts';
import { ProcessKubelet } from '../support/kubernetes/processes/process-kubelet.ts';
import { slotsFor } from '../support/slots-for.ts';
import { until } from '../support/until.ts';
import { readCpuUs, readPssBytes, readRssBytes } from './measure/process-usage.ts';
import { percentile } from './measure/spread.ts';
import { openPodsStage } from './pods/pods-stage.ts';

// `npm run pods-scale`: one worker with the Pods of 1,000 sessions. The keepers are real, with a shell each, as
// processes in one network namespace with an address for each. The API server is that of the tests. Needs root.
// `-- --sessions 50` takes fewer. Exits with 1 if a figure is missed.

const { values } = parseArgs({ options: { sessions: { type: 'string', default: '1000' } } });
const SESSIONS = Number(values.sessions);
/** Sessions that are opened at once. */
const OPENED_AT_ONCE = 20;
const LEASE_MS = 5_000;
const QUIET_MS = 10_000;
const CUTS = 20;
const CUT_EVERY_MS = 1_000;
/** Pods that die, and sessions that are opened, in each second with a cut. */
const CHANGED_PER_CUT = Math.min(5, Math.ceil(SESSIONS / CUTS / 2));
const NOTICED_WITHIN_MS = 60_000;
const [MOST_BYTES, MOST_ADOPTION_MS] = [300e6, 10_000];
const SPEC: SessionSpec = { policy: 'kubernetes', idleTimeoutMs: 3_600_000 };
const IMAGE = 'registry.example/none:1';

interface Figure {
  figure: string;
  measured: string;
  wanted?: string;
  met?: boolean;
}
const figures: Figure[] = [];
const megabytes = (bytes = Number.NaN) => `${(bytes / 1e6).toFixed(0)} MB`;
const seconds = (ms: number) => `${(ms / 1_000).toFixed(1)} s`;

await using cleanup = new AsyncDisposableStack();
const interrupted = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => reject(new Error(signal)));
});
// One that comes before anything is measured ends the program then.
interrupted.catch(() => {});
const namespaces = cleanup.use(await PodNamespaces.open(SESSIONS + CUTS * CHANGED_PER_CUT));
const stage = cleanup.use(
  await openPodsStage({
    ...{ host: '127.0.0.1', keeperImage: IMAGE, sessionImage: IMAGE, slots: slotsFor(SESSIONS) },
    // Processes of this machine have no control groups, no filter, and a route to it.
    unenforced: ['network', 'pids', 'memory', 'seccomp', 'exec'],
  }),
);
const { server, fleet } = stage;
const kubelet = new ProcessKubelet(server.store, namespaces, 'node-1');

/** Opens a session whose shell knows its name, so that another shell cannot pose as it. */
async function open(id: string): Promise<Session> {
  const session = await fleet.session(id, SPEC);
  await answer(session, `me=${id}; echo $me`, id);
  return session;
}

/** Throws unless the command prints the text and a newline. */
async function answer(session: Session, command: string, text: string): Promise<void> {
  const { outcome, error, stdout } = await session.run(command);
  if (outcome === 'success' && stdout === `${text}\n`) return;
  throw new Error(`the session ${session.id} answered ${outcome} ${JSON.stringify(error ?? stdout)}`);
}

async function openAll(): Promise<Session[]> {
  const sessions: Session[] = [];
  let next = 0;
  const openSome = async () => {
    while (next < SESSIONS) sessions.push(await open(`s${next++}`));
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, openSome));
  return sessions;
}

async function measureMemory(name: string, pid: number | undefined): Promise<void> {
  const [rss, pss] = [await readRssBytes(pid), await readPssBytes(pid)];
  const met = Math.max(rss ?? Number.NaN, pss ?? Number.NaN) <= MOST_BYTES;
  figures.push({
    figure: `memory of ${name}, RSS and PSS`,
    measured: `${megabytes(rss)}, ${megabytes(pss)}`,
    wanted: `≤ ${megabytes(MOST_BYTES)}`,
    met,
  });
}

/** Counts what a worker asks the API server for while nothing happens. */
async function measureRequests(pid: number | undefined): Promise<void> {
  const [before, cpuBefore] = [server.requests.length, await readCpuUs(pid)];
  await delay(QUIET_MS);
  const cpu = ((await readCpuUs(pid)) ?? Number.NaN) - (cpuBefore ?? Number.NaN);
  const during = server.requests.slice(before).map(({ verb, resource }) => `${verb} ${resource}`);
  figures.push(
    { figure: 'watches that are open', measured: `${server.watchCount}`, wanted: '1', met: server.watchCount === 1 },
    { figure: 'requests to the API server since the start', measured: countByName(server.requests) },
    { figure: `requests in ${seconds(QUIET_MS)} without commands`, measured: during.join(', ') || '0' },
    { figure: 'processor time in these', measured: seconds(cpu / 1_000) },
  );
}

function countByName(requests: readonly { verb: string; resource: string }[]): string {
  const names = Object.entries(Object.groupBy(requests, ({ verb, resource }) => `${verb} ${resource}`));
  return names.map(([name, all = []]) => `${all.length} ${name}`).join(', ');
}

async function measureAdoption(sessions: readonly Session[], killed: () => void): Promise<void> {
  const from = performance.now();
  killed();
  const times = await Promise.all(
    sessions.map(async (session) => {
      await answer(session, 'echo $me', session.id);
      return performance.now() - from;
    }),
  );
  const last = Math.max(...times);
  const adoption = last - LEASE_MS;
  figures.push(
    {
      figure: 'kill -9 until sessions answer: half, 99 %, all',
      measured: [percentile(times, 0.5), percentile(times, 0.99), last].map(seconds).join(', '),
    },
    {
      figure: `all of them, after the lease of ${seconds(LEASE_MS)}`,
      measured: seconds(adoption),
      wanted: `≤ ${seconds(MOST_ADOPTION_MS)}`,
      met: adoption <= MOST_ADOPTION_MS,
    },
  );
}

/** Cuts the watch each second, while Pods die or are deleted and others are made. */
async function measureCuts(): Promise<void> {
  const watchesBefore = server.requests.filter(({ verb }) => verb === 'watch').length;
  const all = server.store.list('pods') as Pod[];
  const dying = all.slice(0, CUTS * CHANGED_PER_CUT);
  const opened: Promise<boolean>[] = [];
  for (let cut = 0; cut < CUTS; cut++) {
    server.cutWatches();
    for (let turn = 0; turn < CHANGED_PER_CUT; turn++) {
      const index = cut * CHANGED_PER_CUT + turn;
      const pod = dying[index] as Pod;
      if (turn % 2 === 0) void kubelet.kill(pod);
      else server.deletePod(pod.metadata.namespace, pod.metadata.name);
      opened.push(isOpened(`n${index}`));
      await delay(CUT_EVERY_MS / CHANGED_PER_CUT);
    }
  }
  const watches = server.requests.filter(({ verb }) => verb === 'watch').length - watchesBefore;
  const used = (await Promise.all(opened)).filter(Boolean).length;
  const lost = await until(countLost, (count) => count >= dying.length, NOTICED_WITHIN_MS).catch(countLost);
  const ofAll = (count: number, wanted: number) => ({
    measured: `${count}`,
    wanted: `${wanted}`,
    met: count === wanted,
  });
  figures.push(
    { figure: `watches that followed ${CUTS} cuts`, measured: `${watches}` },
    { figure: 'deaths that were noticed', ...ofAll(lost, dying.length) },
    { figure: 'new Pods that were used', ...ofAll(used, opened.length) },
    { figure: 'Pods that run then', ...ofAll(kubelet.count, SESSIONS) },
  );
}

/** Tells whether a new session answers in time. */
async function isOpened(id: string): Promise<boolean> {
  const late = delay(NOTICED_WITHIN_MS, undefined, { ref: false }).then(() => Promise.reject(new Error('too late')));
  return Promise.race([open(id), late]).then(
    () => true,
    (error: Error) => {
      report(`the session ${id} was not opened: ${error.message}`);
      return false;
    },
  );
}

async function countLost(): Promise<number> {
  let lost = 0;
  for await (const { state } of fleet.sessions()) if (state === 'lost') lost += 1;
  return lost;
}

const began = performance.now();
const report = (line: string) => console.error(`${seconds(performance.now() - began)} ${line}`);
const load = () =>
  `load average ${loadavg()
    .map((one) => one.toFixed(1))
    .join(', ')}`;

async function measure(): Promise<void> {
  report(load());
  const first = await stage.startWorker();
  const openingFrom = performance.now();
  const sessions = await openAll();
  figures.push({
    figure: `sessions opened, ${OPENED_AT_ONCE} at once`,
    measured: `${sessions.length} in ${seconds(performance.now() - openingFrom)}`,
  });
  report(`opened all; ${load()}`);
  await delay(QUIET_MS);
  await measureMemory('the worker', first.pid);
  await measureRequests(first.pid);
  const second = await stage.startWorker();
  report(`kills the worker; ${load()}`);
  await measureAdoption(sessions, () => first.kill('SIGKILL'));
  report(`adopted all; ${load()}`);
  await delay(QUIET_MS);
  await measureMemory('the second worker', second.pid);
  await measureCuts();
  report(load());
}

await Promise.race([measure(), interrupted]);
console.table(figures);
if (figures.some(({ met }) => met === false)) process.exitCode = 1;
