import type { CallOrder } from '@shellfleet/concurrency';
import { abortable } from '@shellfleet/concurrency';
import { appendTerminalInput } from '@shellfleet/mailbox';
import {
  DEFAULTS,
  isShellfleetError,
  parseOrThrow,
  type SessionKeys,
  ShellfleetError,
  type TerminalStart,
  terminalSizeSchema,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import { z } from 'zod';
import { sendOperation } from '../files/run-operation.ts';
import { requestFromHost } from '../hosts/request-from-host.ts';
import type { OpenSession } from '../submit/open-session.ts';
import type { TerminalContext } from './terminal.ts';
import { sessionClosed, Terminal } from './terminal.ts';

/** How a terminal is opened. */
export interface AttachOptions {
  /**
   * Height in characters.
   * @default 24
   * @limit 1 to 10,000
   */
  rows?: number | undefined;
  /**
   * Width in characters.
   * @default 80
   * @limit 1 to 10,000
   */
  cols?: number | undefined;
  /**
   * `TERM` of the programs.
   * @default 'xterm-256color'
   * @limit 1 to 64 of `A-Z a-z 0-9 . _ + -`
   */
  term?: string | undefined;
  /** Closes the terminal, or ends the attempt to open it. */
  signal?: AbortSignal | undefined;
}

const REPLY_WITHIN_MS = 10_000;
/** Number of attempts to open a terminal. A sandbox may be removed between the request for it and its use. */
const ATTEMPTS = 3;

const optionsSchema = z.object({
  rows: terminalSizeSchema.shape.rows.default(DEFAULTS.terminal.rows),
  cols: terminalSizeSchema.shape.columns.default(DEFAULTS.terminal.cols),
  term: z
    .string('must be a string')
    .regex(/^[A-Za-z0-9._+-]{1,64}$/, 'must be the name of a terminal, such as xterm-256color')
    .default(DEFAULTS.terminal.term),
});

/**
 * Opens a terminal alongside the session's commands. If the session has no sandbox, it first waits in the queue for
 * one.
 */
export async function openTerminal(
  context: TerminalContext,
  session: OpenSession,
  order: CallOrder,
  { signal, ...given }: AttachOptions,
): Promise<Terminal> {
  signal?.throwIfAborted();
  const { rows, cols: columns, term } = parseOrThrow(optionsSchema, given, 'COMMAND_INVALID', 'The terminal');
  const { keys, generation } = session;
  const terminal = context.nextId();
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const begun = await appendTerminalInput(context.redis, keys, {
      terminal,
      generation,
      begin: true,
      number: 1,
      read: 0,
      messages: [],
    });
    if (begun.type === 'closed') throw sessionClosed(session.id);
    const host = begun.type === 'unknown' ? '' : begun.host;
    if (host !== '') {
      const start = { generation, rows, columns, term };
      const question = { type: 'attach', terminal, ...start, signed: sign(context, keys, terminal, start) } as const;
      const asked = requestFromHost(context, host, keys, question, { timeoutMs: REPLY_WITHIN_MS, signal });
      const { state } = await asked.catch(toNoShell);
      if (state === 'open') return new Terminal(context, session, terminal, { rows, cols: columns }, signal);
    }
    await askForShell(context, session, order, signal);
  }
  throw new ShellfleetError(
    'SESSION_LOST',
    `The sandbox of session ${session.id} went away while a terminal was opened in it.`,
    {
      sessionId: session.id,
    },
  );
}

/** Signs the start of the terminal, which precedes the first message. */
function sign({ sealer }: TerminalContext, keys: SessionKeys, terminal: string, start: TerminalStart): string {
  if (!sealer.signs) return '';
  return sealer.seal(JSON.stringify(start), sealPlace('terminal-input', keys, { terminal, number: 0 }));
}

/**
 * Returns the reply `no-shell` for an error after which another attempt can succeed, because the host has just released
 * the session.
 */
function toNoShell(error: unknown): { state: 'no-shell' } {
  if (isShellfleetError(error) && error.code === 'LEASE_LOST') return { state: 'no-shell' };
  throw error;
}

/**
 * Submits an entry that needs a sandbox, so that the session gets a sandbox. The entry keeps its order among the
 * commands.
 */
async function askForShell(
  context: TerminalContext,
  session: OpenSession,
  order: CallOrder,
  signal: AbortSignal | undefined,
): Promise<void> {
  const sent = await order.run(() => sendOperation(context, session, { name: 'stat', path: '/' }));
  await abortable(sent.reply(), signal);
}
