/**
 * `starting`: gets ownership and takes over an existing shell. `serving`: runs entries, or waits for them. The others end the session, with
 * the entry that runs at that time.
 */
export type SessionState = 'starting' | 'serving' | 'handing-over' | 'shutting-down' | 'closing' | 'fenced';

/** A session only moves to a state of a higher rank: a close outranks a stop of the worker, a lost lease outranks both. */
export const RANK: Record<SessionState, number> = {
  starting: 0,
  serving: 1,
  'handing-over': 2,
  'shutting-down': 2,
  closing: 3,
  fenced: 4,
};

/** The handling of the session when the worker stops: its shell is left to the next worker, or ended. */
export type Stop = 'hand-over' | 'end';
