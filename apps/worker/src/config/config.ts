import { cpus, homedir, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { checkEscalation, DocumentError } from '@shellfleet/policy';
import {
  DEFAULT_POLICY,
  type PolicyName,
  readTracingChoice,
  type TracingChoice,
  toIssueText,
} from '@shellfleet/protocol';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { environmentSchema, MOST_SLOTS } from './environment.ts';
import { type KubernetesSettings, toKubernetesSettings } from './kubernetes-section.ts';
import type { SinkTarget } from './sink-target.ts';

// The only reader of the environment in this app.

/** Memory that an idle session takes at most, with the processes that serve it. */
export const SESSION_BYTES = 16 * 2 ** 20;
/** Slots of a worker that makes only Pods, whose memory is that of other machines. */
const SLOTS_FOR_PODS = 500;
/** Variables that any program needs. None of them is a setting of the worker. */
const TOOL_ENV_NAMES = ['PATH', 'HOME', 'USER', 'LANG', 'LC_ALL', 'TZ', 'TMPDIR'];

interface KeepBounds {
  containers: number;
  ageMs: number;
}

export interface WorkerConfig {
  redisUrl: string;
  namespace: string;
  hostId: string | undefined;
  slots: number;
  policies: PolicyName[];
  hostUser: { user: string | undefined; sharedUid: boolean };
  codexProgram: string | undefined;
  workspaces: string[];
  users: ('root' | 'image')[];
  /** Whether sessions may turn off the built-in redaction of formats. */
  redactFormats: boolean;
  uids: { first: number; last: number } | undefined;
  images: string[] | 'any';
  defaultImage: string;
  /** Absolute paths of modules. */
  tools: string[];
  toolSlots: number;
  /** The only variables of this process that a tool's process receives. */
  toolEnv: Record<string, string>;
  /** Most detached batches that this worker drives at a time. */
  batches: number;
  transport: 'auto' | 'socket' | 'attach';
  dockerSocketPath: string;
  /** Where the logins for registries are. */
  registryLogins: { path: string; isRequired: boolean; env: Record<string, string> };
  stateDirectory: string;
  sealKeys: string[] | undefined;
  logs: { commandBytes: number; hostBytes: number; maxAgeMs: number };
  retentionMs: number;
  readerStallMs: number;
  /** Limit on the bytes that one container writes. */
  diskBytes: number | undefined;
  /** Free space below which the host takes no new session. */
  leastFree: { diskBytes: number | undefined; memoryBytes: number | undefined };
  /** Percentages of time spent waiting, above which it takes none either. */
  mostPressure: { memory: number; io: number };
  /** Bounds of the containers that are kept for a post-mortem. */
  keep: KeepBounds;
  /** Contents of the file that SHELLFLEET_CONFIG names. */
  file: ConfigFile;
  /** The section `kubernetes` of that file, if it has one, with the API server. */
  kubernetes: KubernetesSettings | undefined;
  /** The port for those who watch the worker, if it has one. `scaleToken` is a secret. */
  metrics: { port: number; host: string; scaleToken: string | undefined } | undefined;
  /** How spans are exported, why they are not, or undefined if nobody asks for them. */
  tracing: TracingChoice | string | undefined;
  logLevel: string;
  logSink: SinkTarget | undefined;
  auditSink: SinkTarget | undefined;
  auditStore: 'file' | 'redis';
  hostMemoryBytes: number;
  hostCpus: number;
}

/** Invalid settings. The message names every invalid variable, or the invalid lines of the file. */
export class ConfigError extends Error {}

export function readConfig(env: NodeJS.ProcessEnv = process.env): WorkerConfig {
  // An empty variable counts as not set, as in compose files.
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ''));
  const parsed = environmentSchema.safeParse(given, { error: toIssueText });
  if (!parsed.success) {
    throw new ConfigError(parsed.error.issues.map((issue) => `${String(issue.path[0])} ${issue.message}`).join('; '));
  }
  const values = parsed.data;
  const { SHELLFLEET_UIDS: uids } = values;
  const file = readFile(values.SHELLFLEET_CONFIG);
  const policies = inOnePlace('policies', values.SHELLFLEET_POLICIES, file.allow.policies) ?? [DEFAULT_POLICY];
  const makesOnlyPods = policies.every((policy) => policy === 'kubernetes');
  const slots = values.SHELLFLEET_SLOTS ?? (makesOnlyPods ? SLOTS_FOR_PODS : usualSlots(uids));
  if (uids !== undefined && uids.last - uids.first + 1 < slots)
    throw new ConfigError(`SHELLFLEET_UIDS must have at least as many uids as there are slots, ${slots}`);
  const users = inOnePlace('users', values.SHELLFLEET_USERS, file.allow.users) ?? [];
  const { SHELLFLEET_WORKSPACES: workspaces } = values;
  checkWider(file, policies, workspaces);
  checkPools(file, { policies, slots, uids });
  const kubernetes = file.kubernetes && toKubernetesSettings(file.kubernetes, given);
  checkKubernetes(file, { policies, uids, kubernetes });
  const auditStore = file.audit.store ?? (makesOnlyPods ? 'redis' : 'file');
  if (auditStore === 'redis' && values.SHELLFLEET_AUDIT_SINK !== undefined)
    throw new ConfigError(
      'SHELLFLEET_AUDIT_SINK copies files, and this audit is in Redis (audit.store): use `shellfleet audit export --follow`',
    );
  return {
    redisUrl: values.SHELLFLEET_REDIS_URL,
    namespace: values.SHELLFLEET_NAMESPACE,
    hostId: values.SHELLFLEET_HOST_ID,
    slots,
    policies,
    hostUser: { user: values.SHELLFLEET_HOST_USER, sharedUid: values.SHELLFLEET_HOST_SHARED_UID === '1' },
    codexProgram: values.SHELLFLEET_CODEX,
    workspaces,
    users,
    // `up` sets the variable for its own workers, so an operator's file takes precedence.
    redactFormats: file.allow.redactFormats ?? values.SHELLFLEET_ALLOW_UNREDACTED === '1',
    uids,
    images: values.SHELLFLEET_IMAGES ?? 'any',
    defaultImage: values.SHELLFLEET_DEFAULT_IMAGE,
    tools: [...new Set(values.SHELLFLEET_TOOLS)],
    toolSlots: values.SHELLFLEET_TOOL_SLOTS,
    toolEnv: pickEnv(given, TOOL_ENV_NAMES),
    batches: values.SHELLFLEET_BATCHES,
    transport: values.SHELLFLEET_TRANSPORT,
    dockerSocketPath: values.SHELLFLEET_DOCKER_SOCKET ?? socketOf(given.DOCKER_HOST) ?? '/var/run/docker.sock',
    registryLogins: {
      path: file.images.logins ?? join(given.DOCKER_CONFIG ?? join(homedir(), '.docker'), 'config.json'),
      isRequired: file.images.logins !== undefined,
      env: withoutSettings(given),
    },
    stateDirectory:
      values.SHELLFLEET_STATE_DIR ?? join(given.XDG_STATE_HOME ?? join(homedir(), '.local', 'state'), 'shellfleet'),
    sealKeys: values.SHELLFLEET_SEAL_KEY,
    logs: {
      commandBytes: values.SHELLFLEET_OVERFLOW_LOG_COMMAND_BYTES,
      hostBytes: values.SHELLFLEET_OVERFLOW_LOG_HOST_BYTES,
      maxAgeMs: values.SHELLFLEET_OVERFLOW_LOG_AGE_MS ?? values.SHELLFLEET_RETENTION,
    },
    retentionMs: values.SHELLFLEET_RETENTION,
    readerStallMs: values.SHELLFLEET_READER_STALL,
    diskBytes: values.SHELLFLEET_DISK_BYTES,
    leastFree: { diskBytes: values.SHELLFLEET_MIN_FREE_DISK, memoryBytes: values.SHELLFLEET_MIN_FREE_MEMORY },
    mostPressure: { memory: values.SHELLFLEET_MAX_MEMORY_PRESSURE, io: values.SHELLFLEET_MAX_IO_PRESSURE },
    keep: { containers: values.SHELLFLEET_KEEP_CONTAINERS, ageMs: values.SHELLFLEET_KEEP_AGE },
    file,
    kubernetes,
    metrics:
      values.SHELLFLEET_METRICS_PORT === undefined
        ? undefined
        : {
            port: values.SHELLFLEET_METRICS_PORT,
            host: values.SHELLFLEET_METRICS_HOST,
            scaleToken: values.SHELLFLEET_SCALE_TOKEN,
          },
    tracing: readTracingChoice(given),
    logLevel: values.SHELLFLEET_LOG_LEVEL,
    logSink: values.SHELLFLEET_LOG_SINK,
    auditSink: values.SHELLFLEET_AUDIT_SINK,
    auditStore,
    hostMemoryBytes: totalmem(),
    hostCpus: cpus().length,
  };
}

/** Returns how many idle sessions fit in the memory, at most one for each uid. */
function usualSlots(uids: WorkerConfig['uids']): number {
  // Zero without a limit of the control group, or an immense number.
  const memoryBytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  const ofUids = uids === undefined ? MOST_SLOTS : uids.last - uids.first + 1;
  return Math.max(1, Math.min(MOST_SLOTS, ofUids, Math.floor(memoryBytes / SESSION_BYTES)));
}

function readFile(path: string | undefined): ConfigFile {
  try {
    return readConfigFile(path && resolve(path));
  } catch (error) {
    throw error instanceof DocumentError ? new ConfigError(`SHELLFLEET_CONFIG: ${error.message}`) : error;
  }
}

/** Returns the value that is set. Throws when both are, because a person who reads one place would miss the other. */
function inOnePlace<T>(field: 'policies' | 'users', ofVariable: T | undefined, ofFile: T | undefined): T | undefined {
  if (ofVariable !== undefined && ofFile !== undefined)
    throw new ConfigError(
      `SHELLFLEET_${field.toUpperCase()} and allow.${field} of SHELLFLEET_CONFIG are both set: keep one`,
    );
  return ofVariable ?? ofFile;
}

/** Throws for a wider sandbox that no session of this host could ever have. */
function checkWider({ escalation, allow }: ConfigFile, policies: readonly PolicyName[], workspaces: readonly string[]) {
  if (escalation === undefined) return;
  const sharing = policies.filter((policy) => policy !== 'docker' || workspaces.length > 0);
  const problem = checkEscalation({ escalation, allow }, sharing);
  if (problem !== undefined) throw new ConfigError(`SHELLFLEET_CONFIG: escalation: ${problem}`);
}

/** Throws for pools that this host cannot have. */
function checkPools(
  { pools, allow }: ConfigFile,
  { policies, slots, uids }: Pick<WorkerConfig, 'policies' | 'slots' | 'uids'>,
): void {
  const fewest = pools.reduce((sum, { min }) => sum + min, 0);
  const network = pools.map((pool) => pool.network).find((one) => !allow.networks.includes(one));
  const policy = pools.map((pool) => pool.policy).find((one) => !policies.includes(one));
  const problem = [
    policy !== undefined && `they need the policy ${policy}, which this host does not offer`,
    pools.length > 0 && uids !== undefined && 'with SHELLFLEET_UIDS each sandbox is made for its session',
    network !== undefined && `allow.networks does not list '${network}'`,
    fewest > slots && `together they keep at least ${fewest} sandboxes, and this host has ${slots} slots`,
  ].find((sentence) => sentence !== false);
  if (problem !== undefined) throw new ConfigError(`SHELLFLEET_CONFIG: pools: ${problem}`);
}

/** Throws for settings with which this host could make no Pod. */
function checkKubernetes(
  { allow, kubernetes: section }: ConfigFile,
  { policies, uids, kubernetes }: Pick<WorkerConfig, 'policies' | 'uids' | 'kubernetes'>,
): void {
  if (!policies.includes('kubernetes')) return;
  if (uids !== undefined)
    throw new ConfigError('SHELLFLEET_UIDS has no meaning for Pods: leave it out, or the policy kubernetes');
  if (section === undefined)
    throw new ConfigError('SHELLFLEET_CONFIG: the policy kubernetes needs the section kubernetes');
  if (kubernetes === undefined)
    throw new ConfigError('SHELLFLEET_CONFIG: kubernetes.api.server: is needed, because this worker is no Pod');
  if (policies.length === 1 && allow.networks.includes('limited') && section.egress === undefined)
    throw new ConfigError("SHELLFLEET_CONFIG: kubernetes.egress: is needed, because allow.networks lists 'limited'");
}

function pickEnv(env: NodeJS.ProcessEnv, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}

/** Returns the environment without the variables of Shellfleet, some of which are secrets. */
function withoutSettings(env: NodeJS.ProcessEnv): Record<string, string> {
  return pickEnv(
    env,
    Object.keys(env).filter((name) => !name.startsWith('SHELLFLEET_')),
  );
}

function socketOf(dockerHost: string | undefined): string | undefined {
  return dockerHost?.startsWith('unix://') ? dockerHost.slice('unix://'.length) : undefined;
}
