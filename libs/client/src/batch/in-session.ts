import type { SessionSpec } from '@shellfleet/protocol';
import { retryWhileRedisIsDown } from '@shellfleet/redis';
import { Session } from '../session.ts';
import { beginClose } from '../submit/close-session.ts';
import { type OpenSession, openSession } from '../submit/open-session.ts';
import type { FleetView } from '../view.ts';
import { stopOf } from './batch-stop.ts';

export interface DrivenSession {
  session: Session;
  opened: OpenSession;
}

/** For what a session is opened. */
export interface SessionUse {
  task: { spec?: SessionSpec | undefined };
  /** Aborts to end the use. */
  signal: AbortSignal;
  /** Is called with an error of the use before the session is closed. */
  onError?: ((error: unknown) => void) | undefined;
}

/**
 * Opens a session, uses it, and begins to close it. It is closed earlier when the signal aborts, unless the task's own
 * deadline is the reason: then its outputs are still fetched.
 */
export async function inSession<T>(
  view: FleetView,
  id: string,
  { task: { spec }, signal, onError }: SessionUse,
  use: (driven: DrivenSession) => Promise<T>,
): Promise<T> {
  const opened = await openSession(view, id, spec, { driven: true });
  using _driving = view.driven.drive(opened.keys);
  const close = () => beginClose(view, opened.keys, opened.generation);
  const ended = new AbortController();
  const onAbort = () => {
    if (stopOf(signal) === 'deadline') return;
    // What runs is awaited, so a close that is lost while Redis is away would let it run to its own end.
    void retryWhileRedisIsDown(close, ended.signal, { errorReplies: 'throw' }).catch(() => {});
  };
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    if (signal.aborted) onAbort();
    return await use({ session: new Session(view, opened), opened });
  } catch (error) {
    onError?.(error);
    throw error;
  } finally {
    ended.abort();
    signal.removeEventListener('abort', onAbort);
    await close().catch(() => {});
  }
}
