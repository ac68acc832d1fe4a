import { setTimeout as delay } from 'node:timers/promises';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { failWaiting } from './fail-waiting.ts';
import type { ServedSession } from './served-session.ts';

/** An engine that restarts is waited for this long before commands fail. */
const ENGINE_PATIENCE_MS = 20_000;
const ENGINE_POLL_MS = 1_000;

/** Opens and prepares the shell, and returns how long that took. When it fails, what waits is told why. */
export async function makeReady(served: ServedSession): Promise<{ from: number; to: number } | undefined> {
  const { shell, announcements } = served;
  const from = Date.now();
  const signal = AbortSignal.any([served.signal, served.unwanted]);
  if (!shell.hasSandbox) await announcements.starting();
  for (;;) {
    try {
      await shell.makeReady(signal);
      const opened = { from, to: Date.now() };
      await announcements.ready();
      return opened;
    } catch (cause) {
      const error = ensureShellfleetError(cause);
      if (served.signal.aborted) return undefined;
      if (signal.aborted) {
        await shell.abandon();
        return undefined;
      }
      if (error.code === 'DOCKER_UNAVAILABLE' && Date.now() - from < ENGINE_PATIENCE_MS) {
        await delay(ENGINE_POLL_MS);
        continue;
      }
      served.logger.warn({ err: error }, 'session.start-failed');
      await shell.abandon();
      await failWaiting(served, error);
      return undefined;
    }
  }
}
