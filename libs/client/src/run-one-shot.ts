import { createHash, randomUUID } from 'node:crypto';
import { isShellfleetError, type Result, type SessionSpec } from '@shellfleet/protocol';
import { Session } from './session.ts';
import { beginClose } from './submit/close-session.ts';
import { openSession } from './submit/open-session.ts';
import type { RunOptions } from './submit/parse-command.ts';
import type { FleetView } from './view.ts';

/** Most attempts. Another caller with the same key may close the session before this call's command is in it. */
const MOST_ATTEMPTS = 5;

/**
 * Returns the session id of a one-shot command. It depends only on the idempotency key, so a second call finds the
 * session and its command.
 */
export function oneShotSessionId(idempotencyKey?: string): string {
  const name = idempotencyKey === undefined ? randomUUID() : createHash('sha256').update(idempotencyKey).digest('hex');
  return `run-${name}`;
}

/** Runs one command in a separate session, and closes the session. */
export async function runOneShot(
  view: FleetView,
  script: string,
  options: RunOptions,
  spec?: SessionSpec,
): Promise<Result> {
  const { idempotencyKey, signal } = options;
  for (let attempt = 1; ; attempt++) {
    const opened = await openSession(view, oneShotSessionId(idempotencyKey), spec, { driven: true });
    using _driving = view.driven.drive(opened.keys);
    const close = () => beginClose(view, opened.keys, opened.generation).catch(() => {});
    // A session with other callers is not closed, because that would cancel their command.
    let isShared = idempotencyKey !== undefined;
    try {
      const command = await new Session(view, opened).submit(script, options);
      isShared = command.deduplicated;
      const result = await command.result(signal === undefined ? {} : { signal });
      isShared = false;
      return result;
    } catch (error) {
      const closedByOther = isShared && isShellfleetError(error) && error.code === 'SESSION_CLOSED';
      if (!closedByOther || attempt === MOST_ATTEMPTS) throw error;
    } finally {
      if (!isShared) await close();
    }
  }
}
