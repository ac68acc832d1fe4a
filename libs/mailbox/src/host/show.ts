import { TERMINAL_MESSAGES, terminalKeys } from '@shellfleet/protocol';
import { asArray, asNumber, unexpected } from '../reply.ts';
import { defineMailboxScript, runOnSession } from '../script.ts';
import { FENCED, type Fenced, type Owner } from './owner.ts';

const script = defineMailboxScript('host/show');

export interface Showing {
  terminal: string;
  /** the last typed message that the terminal has taken whole */
  taken: number;
  /** of the first message, from 1 */
  number: number;
  /** raw bytes of the terminal that all messages so far stand for */
  rawTo: number;
  /** sealed */
  messages: readonly string[];
}

export type ShowAnswer =
  /** `next`: the number of the message that comes next. */
  | { type: 'stored' | 'misplaced' | 'full'; next: number }
  /** Its user has left it. */
  | { type: 'deserted' };

/** Stores what a terminal shows, or only looks whether somebody is there. */
export async function show(owner: Owner, showing: Showing): Promise<ShowAnswer | Fenced> {
  const { terminal, taken, number, rawTo, messages } = showing;
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
      return { type: 'deserted' };
    case -3:
      return { type: 'full', next };
    default:
      throw unexpected(reply, script.name);
  }
}
