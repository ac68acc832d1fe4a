import { cpus } from 'node:os';
import { hostIdSchema, LIMITS, namespaceSchema, POLICY_NAMES, parseDurationText } from '@shellfleet/protocol';
import { z } from 'zod';
import { policiesSchema, usersSchema } from './allow-section.ts';
import { sinkSchema } from './sink-target.ts';

// The variables of a worker. Each has a default, a unit, and a line of documentation.

const MIB = 1024 * 1024;
export const MOST_SLOTS = 10_000;
/** Paths through which a session could change the host, or read more than a project. */
const NEVER_MOUNTED = [
  '/',
  '/bin',
  '/boot',
  '/dev',
  '/etc',
  '/lib',
  '/proc',
  '/root',
  '/run',
  '/sbin',
  '/sys',
  '/usr',
  '/var',
  '/var/run',
];

const list = z.string().transform((text) =>
  text
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean),
);
const wholeNumber = (least: number, most: number) =>
  z.coerce
    .number(`must be a number`)
    .int('must be a whole number')
    .min(least, `must be at least ${least}`)
    .max(most, `must be at most ${most}`);
const duration = (leastMs: number, mostMs: number) =>
  z
    .string()
    .transform((text) => parseDurationText(text) ?? Number.NaN)
    .pipe(
      z
        .number('must be a time such as 90m, 24h, or a number of milliseconds')
        .min(leastMs, `must be at least ${leastMs} ms`)
        .max(mostMs, `must be at most ${mostMs} ms`),
    );

export const environmentSchema = z.object({
  SHELLFLEET_REDIS_URL: z
    .string()
    .regex(
      /^rediss?(\+(sentinel|cluster))?:\/\//,
      'must be a redis://, redis+sentinel:// or redis+cluster:// URL (rediss for TLS)',
    )
    .default('redis://127.0.0.1:6379')
    .describe('Redis of the fleet'),
  SHELLFLEET_NAMESPACE: namespaceSchema
    .default(namespaceSchema.parse('shellfleet'))
    .describe('Prefix of every key; one fleet each'),
  SHELLFLEET_HOST_ID: hostIdSchema
    .optional()
    .describe('Name of this host; default: made once, kept in the state directory'),
  SHELLFLEET_SLOTS: wholeNumber(1, MOST_SLOTS)
    .optional()
    .describe('Most open sessions at a time, while there is room; default: memory / 16 MiB'),
  SHELLFLEET_POLICIES: list
    .pipe(policiesSchema)
    .optional()
    .describe(
      `Execution policies that sessions may ask for, comma-separated: ${POLICY_NAMES.join(', ')}; default: docker`,
    ),
  SHELLFLEET_HOST_USER: z
    .string()
    .regex(
      /^(?:[a-z_][a-z0-9_.-]{0,31}|[0-9]{1,9}(?::[0-9]{1,9})?)$/,
      'must be the name of a user, its uid, or uid:gid',
    )
    .optional()
    .describe('Who sessions run as that have no container: a user made for it, never root; no default'),
  SHELLFLEET_HOST_SHARED_UID: z
    .enum(['0', '1'], 'must be 1 or 0')
    .default('0')
    .describe("1: sessions without a container may run as the worker's own user, which owns its keys; default: 0"),
  SHELLFLEET_CODEX: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe('The program of the codex policy; default: codex in a directory of the system'),
  SHELLFLEET_WORKSPACES: list
    .pipe(
      z.array(
        z.string().startsWith('/', 'must hold absolute paths').refine(isMountable, 'holds a directory of the system'),
      ),
    )
    .default([])
    .describe('Directories of this host below which a session may mount its workspace, comma-separated; default: none'),
  SHELLFLEET_USERS: list
    .pipe(usersSchema)
    .optional()
    .describe("More users that sessions may ask for: root, image (names, and the image's own); default: none"),
  SHELLFLEET_ALLOW_UNREDACTED: z
    .enum(['0', '1'], 'must be 1 or 0')
    .default('0')
    .describe('1: sessions may have their output without the built-in redaction of formats; default: 0'),
  SHELLFLEET_UIDS: z
    .string()
    .regex(/^[0-9]{1,9}-[0-9]{1,9}$/, 'must be a range such as 200000-200999')
    .transform((text) => {
      const [first = 0, last = 0] = text.split('-').map(Number);
      return { first, last };
    })
    .refine(({ first }) => first >= 1_000, 'must begin at 1000 or more')
    .optional()
    .describe('Uids for sessions of the docker policy, one each, as first-last; default: all sessions have 1000'),
  SHELLFLEET_IMAGES: list
    .optional()
    .describe("Images that sessions may name: whole names, repositories, prefixes ending in '/'; default: any"),
  SHELLFLEET_DEFAULT_IMAGE: z
    .string()
    .min(1)
    .default('full')
    .describe("Image of a session that names none; 'full' is 'slim' until this host has it"),
  SHELLFLEET_TOOLS: list
    .pipe(z.array(z.string().startsWith('/', 'must hold absolute paths')))
    .default([])
    .describe('Modules whose exports are tools of this host, comma-separated; default: none'),
  SHELLFLEET_TOOL_SLOTS: wholeNumber(1, 1_000)
    .default(cpus().length)
    .describe('Tool calls at a time; default: one a processor'),
  SHELLFLEET_BATCHES: wholeNumber(0, 100)
    .default(4)
    .describe('Detached batches that this worker drives at a time; 0: none; default: 4'),
  SHELLFLEET_TRANSPORT: z
    .enum(['auto', 'socket', 'attach'], "must be 'auto', 'socket' or 'attach'")
    .default('auto')
    .describe(
      "How new sandboxes are reached: 'attach' where the engine cannot share a socket with this worker; 'auto': by trying",
    ),
  SHELLFLEET_DOCKER_SOCKET: z
    .string()
    .startsWith('/')
    .optional()
    .describe("The engine's socket; default: DOCKER_HOST if that is unix://, else /var/run/docker.sock"),
  SHELLFLEET_STATE_DIR: z
    .string()
    .startsWith('/', 'must be an absolute path')
    .optional()
    .describe(
      'Where this host keeps its id, keys and sockets; default: $XDG_STATE_HOME/shellfleet, else ~/.local/state/shellfleet',
    ),
  SHELLFLEET_SEAL_KEY: list
    .optional()
    .describe("Keys that open sealed values, the sealing one first; default: the state directory's"),
  SHELLFLEET_OVERFLOW_LOG_COMMAND_BYTES: wholeNumber(MIB, 2 ** 50)
    .default(64 * MIB)
    .describe(
      'The overflow log of one command: output over the budget of its stream, on the disk of this host; the middle goes first',
    ),
  SHELLFLEET_OVERFLOW_LOG_HOST_BYTES: wholeNumber(MIB, 2 ** 50)
    .default(1024 * MIB)
    .describe('All overflow logs of this host; the oldest go first'),
  SHELLFLEET_OVERFLOW_LOG_AGE_MS: wholeNumber(1_000, 365 * 86_400_000)
    .optional()
    .describe('How long an overflow log is kept after it was last written to; default: SHELLFLEET_RETENTION'),
  SHELLFLEET_RETENTION: duration(1_000, 365 * 86_400_000)
    .default(LIMITS.defaultRetentionMs)
    .describe('How long ended commands, their output, answers and idempotency keys are kept; one value for a fleet'),
  SHELLFLEET_READER_STALL: duration(1_000, 86_400_000)
    .default(60_000)
    .describe('How long a command waits for its attached reader that reads nothing; then it goes on without it'),
  SHELLFLEET_DISK_BYTES: wholeNumber(MIB, 2 ** 50)
    .optional()
    .describe('Of one container on the disk of the engine; default: 10 GiB, or half of the disk if that is less'),
  SHELLFLEET_KEEP_CONTAINERS: wholeNumber(0, 1_000)
    .default(2)
    .describe(
      'Containers that the host keeps, stopped, for sessions with `keepOnFailure`; the oldest goes first. 0: none',
    ),
  SHELLFLEET_KEEP_AGE: duration(1_000, 365 * 86_400_000)
    .default(86_400_000)
    .describe('How long it keeps each of them'),
  SHELLFLEET_MIN_FREE_DISK: wholeNumber(0, 2 ** 50)
    .optional()
    .describe('Bytes; with less free disk the host takes no new session; default: 1 GiB, or a twentieth of the disk'),
  SHELLFLEET_MIN_FREE_MEMORY: wholeNumber(0, 2 ** 50)
    .optional()
    .describe('Bytes; with less free memory it takes none either; default: 256 MiB, or a twentieth of the memory'),
  SHELLFLEET_MAX_MEMORY_PRESSURE: wholeNumber(0, 100)
    .default(20)
    .describe(
      'Percent of the last 10 s in which all processes waited for memory; above it, no new session. 100: no bound; default: 20',
    ),
  SHELLFLEET_MAX_IO_PRESSURE: wholeNumber(0, 100)
    .default(80)
    .describe('The same for the disks, of the last minute; default: 80'),
  SHELLFLEET_CONFIG: z
    .string()
    .optional()
    .describe('YAML file with the settings that need structure: rules, what sessions may ask for; default: none'),
  SHELLFLEET_LOG_SINK: sinkSchema
    .optional()
    .describe('Where log lines go beside stdout: file:///PATH, unix:///PATH or tcp://HOST:PORT; default: nowhere'),
  SHELLFLEET_AUDIT_SINK: sinkSchema
    .optional()
    .describe('Where records of the audit are copied to, in the same forms; default: nowhere'),
  SHELLFLEET_METRICS_PORT: wholeNumber(0, 65_535)
    .optional()
    .describe('Port of /metrics, /healthz, /readyz and /scale; 0: a free one, which the log names; default: none'),
  SHELLFLEET_METRICS_HOST: z
    .string()
    .min(1)
    .default('127.0.0.1')
    .describe('Address of that port, `::` for all; default: 127.0.0.1, only for programs on this machine'),
  SHELLFLEET_SCALE_TOKEN: z
    .string()
    .min(16, 'must have at least 16 characters')
    .regex(/^[\x21-\x7e]+$/, 'must have no spaces and only ASCII characters')
    .optional()
    .describe('Bearer token for /scale; without it, nobody may read that'),
  SHELLFLEET_LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'must be trace, debug, info, warn, error or silent')
    .default('info')
    .describe('Least level of a log line'),
});

function isMountable(directory: string): boolean {
  return !directory.split('/').includes('..') && !NEVER_MOUNTED.includes(directory.replace(/\/+$/, '') || '/');
}
