import type { SessionKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** The right of one host to write a session's mailbox. Every host script checks fence and host. */
export interface Owner {
  redis: Redis;
  keys: SessionKeys;
  fence: number;
  host: string;
}

/** Another host owns the session now: write nothing more. Its own answer, not an error. */
export type Fenced = { type: 'fenced' };
export const FENCED: Fenced = { type: 'fenced' };
