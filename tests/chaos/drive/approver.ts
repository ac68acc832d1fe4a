import { setTimeout as delay } from 'node:timers/promises';
import { type Fleet, isShellfleetError } from '@shellfleet/client';
import { createRandom } from '../../support/random.ts';
import { seedOf } from '../plan/operations.ts';

const LOOK_EVERY_MS = 150;

/** Someone who approves what is asked, sooner or later and in one scope or another, and takes approvals back again. */
export function startApprover({ approvals }: Pick<Fleet, 'approvals'>, seed: number): { close(): Promise<void> } {
  const random = createRandom(seedOf(seed, 'approver'));
  const stop = new AbortController();
  const attempt = (call: () => Promise<void>) =>
    call().catch((error: unknown) => {
      // Redis is away, or the question has ended meanwhile. What waits still is listed again.
      if (!isShellfleetError(error)) throw error;
    });
  const look = async () => {
    for (const { id } of await approvals.list())
      if (random.chance(0.7))
        await attempt(() => approvals.approve(id, { scope: random.pick(['command', 'session']) }));
    const [held] = await approvals.list({ state: 'approved' });
    if (held !== undefined && random.chance(0.2)) await attempt(() => approvals.revoke(held.id));
  };
  const ended = (async () => {
    while (!stop.signal.aborted) {
      await attempt(look);
      await delay(LOOK_EVERY_MS, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();
  return {
    close() {
      stop.abort();
      return ended;
    },
  };
}
