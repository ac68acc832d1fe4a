import type { Lane } from './plan-faults.ts';

export type SmallDisk = 'redis' | 'host';

/** A kind of round: the settings of its fleet, and the faults that it mixes. */
export interface RoundKind {
  name: string;
  /** Settings of Redis, in addition to those of every round. */
  redis: string[];
  /** The short round of this kind in `npm test`. */
  inTests?: { seed: number; seconds: number };
  /**
   * Whether every session keeps its marks on the host and not in its sandbox, so that faults may remove any sandbox.
   */
  marksOnHost?: boolean;
  /** Parts that are on a small file system of their own, which a fault fills. */
  smallDisks: readonly SmallDisk[];
  lanes: Lane[];
  /** Retention of the fleet. Default: longer than the round. */
  retention?: string;
  /** Shortest and longest time between two faults of a lane. */
  gapMs: readonly [least: number, most: number];
}

const SHORT_GAP = [500, 4_500] as const;

const SYNCED = ['--appendonly', 'yes', '--appendfsync', 'always'];

const workers: Lane = {
  'worker-kill': [0, 1_500],
  'worker-stop': [500, 3_500],
  'worker-term': [0, 500],
  'worker-stall': [3_000, 3_000],
  'worker-clock-jump': [2_000, 4_000],
};
const clients: Lane = { 'client-kill': [0, 0], 'client-stop': [500, 4_000], 'client-term': [0, 0] };
const containers: Lane = { 'container-kill': [0, 0], 'container-remove': [0, 0], 'container-pause': [500, 2_500] };
const redisAway: Lane = { 'redis-kill': [0, 3_000], 'redis-stop': [500, 4_000], 'redis-restart': [0, 0] };
const network: Lane = { partition: [500, 3_500], latency: [1_000, 4_000], 'lost-reply': [0, 0] };
const lostHosts: Lane = { 'host-dead': [10_000, 12_000], 'host-asleep': [10_000, 12_000] };

export const ROUND_KINDS: readonly RoundKind[] = [
  {
    name: 'processes and networks',
    redis: SYNCED,
    smallDisks: [],
    inTests: { seed: 1, seconds: 20 },
    lanes: [workers, clients, containers, network],
    gapMs: SHORT_GAP,
  },
  {
    name: 'Redis goes and comes back',
    redis: SYNCED,
    smallDisks: [],
    inTests: { seed: 1, seconds: 20 },
    lanes: [workers, clients, redisAway, network],
    gapMs: SHORT_GAP,
  },
  {
    name: 'lost hosts',
    redis: SYNCED,
    smallDisks: [],
    // 30 s are enough for a host that is killed and one that is frozen.
    inTests: { seed: 8, seconds: 30 },
    lanes: [lostHosts, clients, containers],
    gapMs: SHORT_GAP,
  },
  {
    name: 'Redis loses its tail',
    redis: ['--appendonly', 'yes', '--appendfsync', 'everysec'],
    marksOnHost: true,
    smallDisks: [],
    lanes: [{ 'redis-restore': [0, 500] }, { 'worker-kill': [0, 1_000] }],
    gapMs: [6_000, 10_000],
  },
  {
    name: 'a full Redis',
    redis: SYNCED,
    smallDisks: ['redis'],
    inTests: { seed: 1, seconds: 20 },
    lanes: [{ 'redis-full': [1_000, 4_000], 'redis-disk-full': [1_000, 3_000] }, clients],
    gapMs: SHORT_GAP,
  },
  {
    name: 'full disks of hosts',
    redis: SYNCED,
    smallDisks: ['host'],
    lanes: [{ 'host-disk-full': [1_000, 4_000] }, { 'worker-kill': [0, 1_500] }],
    gapMs: SHORT_GAP,
  },
  {
    name: 'sleeping clients',
    redis: SYNCED,
    smallDisks: [],
    retention: '6s',
    lanes: [{ 'client-asleep': [9_000, 12_000] }],
    gapMs: SHORT_GAP,
  },
  {
    name: 'engine and failover',
    redis: SYNCED,
    smallDisks: [],
    lanes: [{ 'dockerd-restart': [0, 0] }, { 'redis-failover': [0, 0] }],
    gapMs: [12_000, 20_000],
  },
];
