// EXAMINE and EXAMINED: what the kernel enforces on a keeper's container, and which addresses it reaches. Lines of text
// in both directions. User code shares the container with the keeper, so anything else than the expected lines is
// malformed. A line that is missing is a value that the keeper could not read.
import { MalformedFrame } from './frames.ts';

/** Most addresses that one examination tries. */
export const MOST_PROBES = 16;

const probeResults = ['connected', 'refused', 'unreachable', 'timeout', 'failed'] as const;
/** How an attempt to reach an address ended. `failed`: it could not be made. */
export type ProbeResult = (typeof probeResults)[number];

/** User ids `inside` to `inside + count - 1` of the container are those from `outside` of its parent. */
interface IdRange {
  inside: number;
  outside: number;
  count: number;
}

export interface Examination {
  uidMap?: IdRange[];
  /** Capabilities that the processes have, and that a program could get, as bits. */
  effectiveCapabilities?: bigint;
  boundingCapabilities?: bigint;
  noNewPrivs?: boolean;
  /** 0 none, 1 strict, 2 a filter. */
  seccomp?: number;
  cgroup?: 1 | 2;
  /** Limits of the control group. Infinity: none. */
  memoryMaxBytes?: number;
  pidsMax?: number;
  /** Whether the kernel kills the whole container when it reaches its limit of memory. Absent in version 1. */
  oomGroup?: boolean;
  /** Whether a file in the workspace may be executed. */
  execWorkspace?: boolean;
  /** Results by address, as it was given. */
  probes: Map<string, ProbeResult>;
}

/** Encodes the addresses to try, each `host:port`, where a host is an address, in brackets for IPv6. */
export function encodeExamine(probes: readonly string[]): Buffer {
  if (probes.length > MOST_PROBES) throw new RangeError(`${probes.length} addresses; at most ${MOST_PROBES} are tried`);
  return Buffer.from(probes.map((address) => `probe ${address}\n`).join(''));
}

export function decodeExamined(payload: Uint8Array): Examination {
  const examination: Examination = { probes: new Map() };
  const seen = new Set<string>();
  for (const line of Buffer.from(payload).toString('latin1').split('\n').slice(0, -1)) {
    const [, name = '', value = ''] = /^(\w+) (.+)$/.exec(line) ?? [];
    const id = name === 'probe' ? line.slice(0, line.lastIndexOf(' ')) : name;
    if (seen.has(id)) throw new MalformedFrame('An examination with a value twice.');
    seen.add(id);
    read(examination, name, value);
  }
  return examination;
}

function read(examination: Examination, name: string, value: string): void {
  switch (name) {
    case 'uid_map':
      examination.uidMap = value.split(',').map(toIdRange);
      break;
    case 'cap_eff':
      examination.effectiveCapabilities = toBits(value);
      break;
    case 'cap_bnd':
      examination.boundingCapabilities = toBits(value);
      break;
    case 'no_new_privs':
      examination.noNewPrivs = toFlag(value);
      break;
    case 'seccomp':
      examination.seccomp = toNumber(value);
      break;
    case 'cgroup':
      examination.cgroup = value === '1' ? 1 : value === '2' ? 2 : malformed(value);
      break;
    case 'memory_max':
      examination.memoryMaxBytes = toLimit(value);
      break;
    case 'pids_max':
      examination.pidsMax = toLimit(value);
      break;
    case 'oom_group':
      examination.oomGroup = toFlag(value);
      break;
    case 'exec_workspace':
      examination.execWorkspace = toFlag(value);
      break;
    case 'probe':
      readProbe(examination.probes, value);
      break;
    default:
      malformed(name);
  }
}

function readProbe(probes: Map<string, ProbeResult>, value: string): void {
  const [address = '', text = '', ...more] = value.split(' ');
  const result = probeResults.find((one) => one === text);
  if (result === undefined || more.length > 0 || probes.size === MOST_PROBES) malformed(value);
  else probes.set(address, result);
}

function toIdRange(text: string): IdRange {
  const [inside, outside, count, ...more] = text.split(' ').map(toNumber);
  if (inside === undefined || outside === undefined || count === undefined || more.length > 0) return malformed(text);
  return { inside, outside, count };
}

const toBits = (text: string): bigint => (/^[0-9a-f]{1,16}$/.test(text) ? BigInt(`0x${text}`) : malformed(text));
const toNumber = (text: string): number => (/^\d{1,20}$/.test(text) ? Number(text) : malformed(text));
const toLimit = (text: string): number => (text === 'max' ? Number.POSITIVE_INFINITY : toNumber(text));
const toFlag = (text: string): boolean => (/^[01]$/.test(text) ? text === '1' : malformed(text));

function malformed(text: string): never {
  throw new MalformedFrame(`An examination with ${JSON.stringify(text.slice(0, 40))}.`);
}
