import { type SessionKeys, TERMINAL_MESSAGES, TERMINAL_TTL_MS } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import { asArray, asNumber, asString, unexpected } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';

const script = defineMailboxScript('producer/type');

interface Typing {
  terminal: string;
  generation: string;
  /** The first call of a terminal makes it. */
  begin: boolean;
  /** of the first message, from 1 */
  number: number;
  /** the last shown message that was read */
  read: number;
  /** sealed */
  messages: readonly string[];
}

export type TypeAnswer =
  /** `next`: the number of the message that comes next. */
  | { type: 'said' | 'misplaced' | 'full'; host: string; next: number }
  | { type: 'closed' }
  /** Its time ran out. */
  | { type: 'unknown' };

/** Says something to a terminal, or only that its user is there; rings its host. */
export async function type(redis: Redis, keys: SessionKeys, typing: Typing): Promise<TypeAnswer> {
  const { terminal, generation, begin, number, read, messages } = typing;
  const bell = `${keys.namespace}:bell:`;
  const place = [
    terminal,
    generation,
    begin ? 1 : 0,
    number,
    read,
    TERMINAL_TTL_MS,
    TERMINAL_MESSAGES,
    bell,
    keys.member,
  ];
  const reply = asArray(await runOnSession(redis, script, keys, [...place, ...messages]), script.name);
  const progress = { host: asString(reply[1]), next: asNumber(reply[2]) };
  switch (reply[0]) {
    case 1:
      return { type: 'said', ...progress };
    case 0:
      return { type: 'misplaced', ...progress };
    case -3:
      return { type: 'full', ...progress };
    case -1:
      return { type: 'closed' };
    case -2:
      return { type: 'unknown' };
    default:
      throw unexpected(reply, script.name);
  }
}
