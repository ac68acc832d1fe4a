import { TERMINAL_MESSAGES, terminalKeys } from '@shellfleet/protocol';
import { asArray, asNumber, unexpected } from '@shellfleet/redis';
import { defineMailboxScript, runOnSession } from '../scripts.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/append-terminal-output');

interface TerminalOutputCall {
  terminal: string;
  /** number of the last input message that the terminal has taken */
  taken: number;
  /** number of the first message, from 1 */
  number: number;
  /** raw bytes of the terminal's output in all messages so far */
  rawTo: number;
  /** sealed */
  messages: readonly string[];
}

export type TerminalOutputReply =
  /** `next` is the number of the next message. */
  { type: 'stored' | 'misplaced' | 'full'; next: number } | { type: 'expired' };

/** Stores output of a terminal. Without messages, only checks that the terminal has not expired. */
export async function appendTerminalOutput(
  owner: Owner,
  { terminal, taken, number, rawTo, messages }: TerminalOutputCall,
): Promise<TerminalOutputReply | Fenced> {
  const { feed } = terminalKeys(owner.keys, terminal);
  const args = [owner.fence, owner.host, terminal, taken, number, rawTo, TERMINAL_MESSAGES, feed, ...messages];
  const reply = asArray(await runOnSession(owner.redis, script, owner.keys, args), script.name);
  const next = asNumber(reply[1]);
  switch (reply[0]) {
    case 1:
      return { type: 'stored', next };
    case 0:
      return { type: 'misplaced', next };
    case -1:
      return FENCED;
    case -2:
      return { type: 'expired' };
    case -3:
      return { type: 'full', next };
    default:
      throw unexpected(reply, script.name);
  }
}
