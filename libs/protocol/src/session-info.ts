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
 * State of a session. `queued`: it waits for a slot, or has no command yet.
 * `starting`: its shell is being opened. `ready`: its shell waits for a command.
 * `busy`: a command runs. `unreachable`: its host does not answer. `closing`, `closed`: it was asked to close, and is
 * closed. `lost`: its shell is gone; the next command gets a fresh one.
 */
export type SessionState = (typeof SESSION_STATES)[number];

/** What is known of a session now. */
export interface SessionInfo {
  /** The caller's name of it. */
  id: string;
  /** What it is doing. */
  state: SessionState;
  /** The host that has the session, or null while none has. */
  hostId: string | null;
  /** Number of shells that the session has had. */
  epoch: number;
  /** Entries that wait to be started: commands, file operations, restarts. */
  queuedCommands: number;
  /**
   * Its position in the queue for a slot, from 1, among the sessions that
   * wait for the same execution policy. Absent when it waits for none.
   */
  position?: number;
  /** How many sessions wait in that queue, itself included. Absent when `position` is. */
  queueLength?: number;
  /** Estimated wait in ms, from how long sessions lately held a slot. Absent before any slot was freed. */
  etaMs?: number;
  /**
   * Why no live host can run the session, in a sentence. Absent when one
   * can, or when its own host is alive. Its commands wait meanwhile.
   */
  noHostReason?: string;
  /** The command that runs. Absent when none does. */
  runningCommandId?: string;
  /** The command that waits for an approval, before all others. Absent when none does. */
  heldCommandId?: string;
  /** Processes that outlived the command that started them, with their pids in the sandbox. */
  background: { pid: number; command: string }[];
  /** True when `background` is not known: the host was not asked (in lists), or did not answer in time. */
  backgroundUnknown?: true;
  /** The image of its container, by the name under which the host found it. Absent while it has had none. */
  image?: string;
  /** The digest of that image: the container has this one, whatever the name means by now. */
  imageDigest?: string;
  /** Those of its spec. */
  labels: Record<string, string>;
  /** Its containers that are kept for a post-mortem. Absent when there is none. */
  kept?: KeptSandbox[];
  /** When it was opened; ISO 8601, by the clock of Redis. */
  createdAt: string;
  /** When its newest event happened; ISO 8601. */
  lastActiveAt: string;
  /** When it was closed; ISO 8601. Only of a closed session. */
  closedAt?: string;
  /** Why it was closed, in a few words. Only of a closed session. */
  closeReason?: string;
}
