import { encodeWakeUp, type SessionKeys, TERMINAL_MESSAGES, TERMINAL_TTL_MS } from '@shellfleet/protocol';
import { asArray, asNumber, asString, unexpected } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';

const script = defineMailboxScript('producer/append-terminal-input');

interface TerminalInputCall {
  terminal: string;
  generation: string;
  /** True in the first call, which creates the terminal. */
  begin: boolean;
  /** number of the first message, from 1 */
  number: number;
  /** number of the last output message that the user has read */
  read: number;
  /** sealed */
  messages: readonly string[];
}

export type TerminalInputReply =
  /** `next` is the number of the next message. */
  { type: 'stored' | 'misplaced' | 'full'; host: string; next: number } | { type: 'closed' } | { type: 'unknown' };

/** Stores messages to a terminal, if there are any. Renews the terminal's time to live, and wakes its host. */
export async function appendTerminalInput(
  redis: Redis,
  keys: SessionKeys,
  { terminal, generation, begin, number, read, messages }: TerminalInputCall,
): Promise<TerminalInputReply> {
  const { tenant, session } = keys;
  const args = [
    terminal,
    generation,
    begin ? 1 : 0,
    number,
    read,
    TERMINAL_TTL_MS,
    TERMINAL_MESSAGES,
    keys.wakeUpsPrefix,
    encodeWakeUp({ type: 'terminal', tenant, session, terminal }),
    ...messages,
  ];
  const reply = asArray(await runOnSession(redis, script, keys, args), script.name);
  const progress = { host: asString(reply[1]), next: asNumber(reply[2]) };
  switch (reply[0]) {
    case 1:
      return { type: 'stored', ...progress };
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
