import { setTimeout as delay } from 'node:timers/promises';
import { type Fleet, isShellfleetError } from '@shellfleet/client';
import { createRandom } from '../../support/random.ts';
import { seedOf } from '../plan/operations.ts';

const LOOK_EVERY_MS = 150;

export interface Approver {
  /** Numbers of approved questions and of revoked approvals. */
  readonly counts: { approved: number; revoked: number };
  close(): Promise<void>;
}

/**
 * Starts an approver, which approves questions after various times and in various scopes, and revokes some approvals.
 */
export function startApprover({ approvals }: Pick<Fleet, 'approvals'>, seed: number): Approver {
  const random = createRandom(seedOf(seed, 'approver'));
  const stop = new AbortController();
  const counts = { approved: 0, revoked: 0 };
  const attempt = (call: () => Promise<void>, counted: () => void = () => {}) =>
    call().then(counted, (error: unknown) => {
      // Redis is away, or the question has ended. A question that still waits is listed again.
      if (!isShellfleetError(error)) throw error;
    });
  const look = async () => {
    for (const { id } of await approvals.list())
      if (random.chance(0.7))
        await attempt(
          () => approvals.approve(id, { scope: random.pick(['command', 'session']) }),
          () => (counts.approved += 1),
        );
    const [held] = await approvals.list({ state: 'approved' });
    if (held !== undefined && random.chance(0.2))
      await attempt(
        () => approvals.revoke(held.id),
        () => (counts.revoked += 1),
      );
  };
  const ended = (async () => {
    while (!stop.signal.aborted) {
      await attempt(look);
      await delay(LOOK_EVERY_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return {
    counts,
    close() {
      stop.abort();
      return ended;
    },
  };
}
