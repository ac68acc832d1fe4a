import { setTimeout as delay } from 'node:timers/promises';
import type { InputRequiredResult } from '@modelcontextprotocol/server';
import { type Command, isShellfleetError, type Result, type Session } from '@shellfleet/client';
import type { ToolCall } from '../tools/tool-call.ts';
import { type CommandState, readState } from './command-state.ts';
import { readExcerpt } from './excerpt.ts';

const FIRST_LOOK_MS = 300;
const LOOK_EVERY_MS = 1_000;

/** How far a command has come: it ended, it is still open, or the client has to ask its person first. */
export type Followed =
  | { type: 'ended'; result: Result }
  | { type: 'open'; state: CommandState; waitedMs: number }
  | { type: 'asks'; request: InputRequiredResult };

/**
 * Follows a command until its end, at most for `waitMs` and until the call has to be answered. Reports progress, and
 * lets the person at the client answer its question.
 */
export async function followCommand(
  call: ToolCall,
  session: Session,
  command: Command,
  waitMs: number,
): Promise<Followed> {
  const startedAt = Date.now();
  const deadline = Math.min(startedAt + waitMs, call.deadline);
  using over = abortAtEnd(call.signal);
  const ended = command.result({ signal: over.signal });
  // The loop below receives the error too, unless it returns first.
  ended.catch(() => {});
  const report = reporterOf(call, command, over.signal);
  let state: CommandState = { status: 'queued' };
  for (let lookMs = FIRST_LOOK_MS; ; lookMs = LOOK_EVERY_MS) {
    const pause = delay(Math.max(0, Math.min(lookMs, deadline - Date.now())), undefined, { signal: over.signal });
    const result = await Promise.race([ended, pause]);
    if (result !== undefined) return { type: 'ended', result };
    state = await readState(session, command, state);
    const waitedMs = Date.now() - startedAt;
    if (Date.now() >= deadline) return { type: 'open', state, waitedMs };
    await report(state, waitedMs);
    if (state.status !== 'waiting for approval') continue;
    const request = await call.person.ask(session, command, deadline);
    if (request !== undefined) return { type: 'asks', request };
  }
}

/** Returns a signal that aborts with another one, and at the end of the block. */
function abortAtEnd(signal: AbortSignal): Disposable & { signal: AbortSignal } {
  const end = new AbortController();
  return { signal: AbortSignal.any([signal, end.signal]), [Symbol.dispose]: () => end.abort() };
}

/** Returns a function that tells the client how a command proceeds. It reads each output once. */
function reporterOf({ wantsProgress, progress }: ToolCall, command: Command, signal: AbortSignal) {
  let bytes = 0;
  let next: string | undefined;
  return async ({ status, waitsFor }: CommandState, waitedMs: number) => {
    if (!wantsProgress) return;
    const seconds = Math.round(waitedMs / 1_000);
    if (status !== 'running') return progress(`${status} for ${seconds} s: it waits for ${waitsFor}`);
    const output = await readExcerpt(command, next, signal).catch(toNothing);
    if (output === undefined) return;
    next = output.next;
    bytes += output.bytes;
    const last = output.output.trimEnd().split('\n').at(-1)?.slice(-200) ?? '';
    await progress(`running for ${seconds} s, ${bytes} bytes of output${last === '' ? '' : `: ${last}`}`);
  };
}

/** Progress may lack while Redis is away. */
function toNothing(error: unknown): undefined {
  if (!isShellfleetError(error)) throw error;
}
