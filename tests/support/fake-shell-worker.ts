import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type AuditEvent, fleetKeys, hostOfferSchema, type PrefixRule } from '@shellfleet/protocol';
import { connectRedis, countCalls } from '@shellfleet/redis';
import { createSealer } from '@shellfleet/sealing';
import { createWorker, type HostServices, readConfig, type Worker } from '@shellfleet/worker';
import {
  ANYONE_SUBMITS,
  createAdmission,
  createWorkerMetrics,
  FakeSandboxes,
  HostMemory,
  logErrorsInto,
  MetricsRegistry,
  RecentLines,
  type Rules,
  type RunScript,
} from '@shellfleet/worker/test-support';
import { ulid } from 'ulid';
import { declareTestFleet, keyspaceOf } from './keyspace.ts';

// A real worker on a real Redis, with shells in memory. The module that connects to shells must be replaced before this
// one is loaded: fake-shell-workers.ts does so in a test, fake-shell-process.ts in a process of its own.

export interface FakeShellWorker {
  readonly id: string;
  readonly worker: Worker;
  readonly sandboxes: FakeSandboxes;
  /** Audit events that this worker has written, in order. */
  readonly audited: AuditEvent[];
  /** Returns the errors that this worker has logged, as text. */
  log(): string;
  /** Returns the number of commands that the shells of this worker have begun. */
  begun(): number;
}

interface Options {
  redisUrl: string;
  namespace: string;
  sealKey: string;
  id: string;
  slots?: number;
  /** More settings of the worker. */
  env?: NodeJS.ProcessEnv;
  rules?: Rules;
  pendingPerTenant?: number;
  webhook?: { url: URL; secret: string };
  /** Runs the scripts of a session. Default: in memory. */
  runScript?: (session: string) => RunScript;
}

export async function startFakeShellWorker(options: Options): Promise<FakeShellWorker> {
  const { redisUrl, namespace, sealKey, id, slots = 10, rules = ASKING, webhook, runScript } = options;
  await declareTestFleet(redisUrl, namespace);
  const connected = await connectRedis(redisUrl, 'host', `worker:${id}`);
  const sandboxes = new FakeSandboxes(runScript && (({ session }) => runScript(session)));
  const log = { append: async () => {}, async *restore() {} };
  const journal = new Set<string>();
  const lines: string[] = [];
  const audited: AuditEvent[] = [];
  const given = readConfig({
    SHELLFLEET_REDIS_URL: redisUrl,
    SHELLFLEET_SLOTS: String(slots),
    SHELLFLEET_DEFAULT_IMAGE: 'none',
    SHELLFLEET_STATE_DIR: tmpdir(),
    SHELLFLEET_MIN_FREE_DISK: '0',
    SHELLFLEET_MIN_FREE_MEMORY: '0',
    SHELLFLEET_MAX_MEMORY_PRESSURE: '100',
    SHELLFLEET_MAX_IO_PRESSURE: '100',
    ...options.env,
  });
  const { file } = given;
  const { pendingPerTenant = file.approvals.pendingPerTenant } = options;
  const keyspace = keyspaceOf(namespace);
  const metrics = given.metrics && createWorkerMetrics(await MetricsRegistry.load());
  if (metrics !== undefined) countCalls(connected.redis, metrics.redis);
  const services: HostServices = {
    settings: { ...given, file: { ...file, approvals: { webhook, pendingPerTenant } } },
    ...{ hostId: id, boot: ulid(), machine: id, version: '0.0.0', namespace: keyspace, fleet: fleetKeys(keyspace) },
    ...{ connected, redis: connected.redis, sandboxes, sealer: createSealer([sealKey]), logger: logErrorsInto(lines) },
    overflowLogs: { ofCommand: () => log, read: async () => ({ pieces: [], more: false }), sweep: async () => {} },
    journal: {
      knows: (begun) => journal.has(begun.id),
      record: (begun) => void journal.add(begun.id),
      close: () => {},
    },
    hostMemory: new HostMemory(),
    recentLines: new RecentLines(id),
    sinks: [],
    batchDirectory: join(tmpdir(), `sf-batches-${ulid()}`),
    metrics,
    redisLosses: { mayHaveHappened: () => connected.history.changes > 0 },
    audit: {
      stateDirectoryId: undefined,
      record: async (_tenant, event) => void audited.push(event),
      recorded: async () => {},
      note: (_tenant, describe) => void audited.push(describe()),
      heads: () => new Map(),
      close: async () => {},
    },
  };
  const worker = await createWorker(services, {
    offer: hostOfferSchema.parse({}),
    tools: [],
    admission: (answers) => createAdmission({ signatures: ANYONE_SUBMITS, rules, answers }),
    decideTool: rules.decideTool,
    checkAnswer: async () => undefined,
    warnings: () => [],
    onReplaced: () => {},
    onOtherFleet: () => {},
  });
  return {
    ...{ id, worker, sandboxes, audited },
    log: () => lines.join(''),
    begun: () => sandboxes.made.reduce((sum, { keeper }) => sum + Math.max(0, keeper.begun.length - PREPARATION), 0),
  };
}

/** Number of entries that a worker runs to prepare a fresh shell, before the first command. */
const PREPARATION = 1;

export function newFleet() {
  const namespace = `a-${ulid().toLowerCase()}`;
  return { namespace, keyspace: keyspaceOf(namespace), sealKey: randomBytes(32).toString('base64') };
}

/**
 * Rules that ask about every command that begins with `ask`, forbid `forbid`, and admit the rest. The amendment is the
 * first two words. The reason quotes a script that has the word `quoted-word`. A restart is decided about like a
 * command whose script is the session's variable RESTART.
 */
export const ASKING: Rules = {
  digest: 'asking',
  decideOpening: () => ({ type: 'allow' }),
  decidesByPath: () => false,
  refuseTerminal: () => undefined,
  decideTool: () => ({ type: 'allow' }),
  decide({ payload, spec }, granted: readonly PrefixRule[] = []) {
    const ofRestart = payload.type === 'restart' ? spec.env.RESTART : undefined;
    const script = payload.type === 'command' ? payload.script : (ofRestart ?? '');
    const quoted = script.includes('quoted-word') ? `: ${script}` : '';
    if (script.startsWith('forbid')) return { type: 'forbid', reason: `it is forbidden${quoted}` };
    if (!script.startsWith('ask')) return { type: 'allow' };
    const words = script.split(' ').slice(0, 2);
    if (granted.some(({ pattern }) => pattern.join(' ') === words.join(' '))) return { type: 'allow' };
    return { type: 'ask', question: { reason: `it asks${quoted}`, amendment: { pattern: words, decision: 'allow' } } };
  },
};
