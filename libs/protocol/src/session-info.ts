export type SessionState = 'queued' | 'starting' | 'ready' | 'busy' | 'unreachable' | 'closing' | 'closed' | 'lost';

export interface SessionInfo {
  id: string;
  state: SessionState;
  /** The host that has the session, or null while none has. */
  hostId: string | null;
  /** Number of shells that the session has had. */
  epoch: number;
  /** Entries that wait to be started: commands, file operations, restarts. */
  queuedCommands: number;
  /** Its position in the queue for a slot, from 1, among the sessions that wait for the same execution policy. */
  position?: number;
  /** Estimated wait in ms, from how long sessions lately held a slot. Absent before any slot was freed. */
  etaMs?: number;
  /** Why no live host can run the session, in a sentence. Absent when one can, or when its own host is alive. Its commands wait meanwhile. */
  noHostReason?: string;
  runningCommandId?: string;
  /** Processes that outlived the command that started them, with their pids in the sandbox. */
  background: { pid: number; command: string }[];
  /** True when `background` is not known: the host was not asked (in lists), or did not answer in time. */
  backgroundUnknown?: true;
  /** ISO 8601 */
  createdAt: string;
  /** ISO 8601 */
  lastActiveAt: string;
}
