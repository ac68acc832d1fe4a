import type { KeptSandbox } from './kept-sandbox.ts';

export const SESSION_STATES = [
  'queued',
  'starting',
  'ready',
  'busy',
  'unreachable',
  'closing',
  'closed',
  'lost',
] as const;

/**
 * State of a session. `queued`: it waits for a slot, or has no command yet. `starting`: its shell is being opened.
 * `ready`: its shell waits for a command. `busy`: a command runs. `unreachable`: its host does not answer. `closing`: a
 * close was requested. `lost`: its shell is gone; the next command gets a fresh one.
 */
export type SessionState = (typeof SESSION_STATES)[number];

/**
 * Why a session gets no shell from a pool. `workspace`, `user`, `network`: it asks for a folder of the host, a user, or
 * the network `limited`, which only a sandbox of its own can have. `no-pool`: its host has no pool with its image,
 * limits and network. `empty`: that pool had no sandbox ready.
 */
export const COLD_REASONS = ['workspace', 'user', 'network', 'no-pool', 'empty'] as const;
export type ColdReason = (typeof COLD_REASONS)[number];

/**
 * How commands get into a shell. `builtin`: bash has loaded a builtin that takes them. `loop`: a loop in the language
 * of the shell does, which is slower.
 */
export const SHELL_WAYS = ['builtin', 'loop'] as const;
export type ShellWay = (typeof SHELL_WAYS)[number];

export interface SessionInfo {
  /** Id of the session, which the caller chose. */
  id: string;
  /** Tenant of the session. Only in lists of the sessions of all tenants. */
  tenant?: string;
  /** State of the session. */
  state: SessionState;
  /** Id of the session's host, or null. */
  hostId: string | null;
  /** Number of shells that the session has had. */
  epoch: number;
  /** Waiting entries: commands, file operations, restarts. */
  queuedCommands: number;
  /**
   * Position from 1 in the order in which slots are given, among the waiting sessions of all tenants that the same
   * hosts could take. Absent outside the queue.
   */
  position?: number;
  /** Number of these sessions, including this one. Absent when `position` is absent. */
  queueLength?: number;
  /** Estimated wait in ms, if slots are freed as often as recently. Absent before any slot was freed. */
  etaMs?: number;
  /**
   * Quota for which the session waits, although hosts may have free slots: `used` of `limit`. Absent when it does not
   * wait for one.
   */
  atQuota?: { quota: 'maxSessions'; used: number; limit: number };
  /**
   * Why no live host can run the session, in a sentence. Absent when a host can run it, or when its own host is alive.
   */
  noHostReason?: string;
  /**
   * What its Pod waits for while the shell is opened, in the words of the scheduler, the kubelet or the quota. Absent
   * when nothing is known, and where shells are not in a cluster.
   */
  waitsFor?: string;
  /**
   * What a host must have to take the session, by field of the spec. Only in the info of one session that waits for a
   * host, and if this process can open its spec.
   */
  needs?: Record<string, string>;
  /**
   * What the session would like of its host: to have the image already, and the session `near`. It is left to such a
   * host for 2 s from when it is next. Absent like `needs`, or if it wishes for nothing.
   */
  wishes?: { image?: string; near?: string };
  /** The command that runs. Absent when none does. */
  runningCommandId?: string;
  /** The first waiting command, while it waits for an approval. Absent when none does. */
  heldCommandId?: string;
  /** Processes that still run although the command that started them has ended. The pids are those in the sandbox. */
  background: { pid: number; command: string }[];
  /** True when `background` is not known: the host was not asked (in lists), or did not answer in time. */
  backgroundUnknown?: true;
  /**
   * How commands get into its shell. Absent when that is not known: before its first command, and when the host was not
   * asked (in lists), or did not answer in time.
   */
  way?: ShellWay;
  /** Image of the container, by the name under which the host found it. Absent before the first container. */
  image?: string;
  /** Digest of the container's image. The name in `image` may now refer to another image. */
  imageDigest?: string;
  /** Node of the cluster on which the last shell was ready. Absent where shells are not in a cluster. */
  node?: string;
  /**
   * Whether its shell was ready before the session asked, in a pool of its host, or was made for it. Absent before its
   * first shell.
   */
  start?: 'warm' | 'cold';
  /** Why the shell was made for the session. Absent unless `start` is `cold`. */
  coldReason?: ColdReason;
  /** Labels of the spec. */
  labels: Record<string, string>;
  /** The session's containers that are kept for a post-mortem. Absent when there is none. */
  kept?: KeptSandbox[];
  /** When the session was opened; ISO 8601, by the clock of Redis. */
  createdAt: string;
  /** Time of the newest event; ISO 8601. */
  lastActiveAt: string;
  /** When the session was closed; ISO 8601. Absent while it is open. */
  closedAt?: string;
  /** Why the session was closed, in a few words. Absent while it is open. */
  closeReason?: string;
}
