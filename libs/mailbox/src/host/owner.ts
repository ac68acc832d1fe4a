import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Right of one host to write a session's mailbox. Every host script checks fence and host (MAILBOX-2). */
export interface Owner {
  redis: Redis;
  keys: SessionKeys;
  fence: number;
  host: string;
  /** Id of the process that has claimed the host id. Without it, `submit` starts nothing in the owner's name. */
  boot?: string | undefined;
  /** Digest of the host's admission rules, under which entries must be cleared. Without it, every entry is admitted. */
  admission?: string | undefined;
}

/** Another host owns the session now, so the caller must write nothing more. This is a return value, not an error. */
export type Fenced = { type: 'fenced' };
export const FENCED: Fenced = { type: 'fenced' };
