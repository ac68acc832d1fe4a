import { setTimeout as delay } from 'node:timers/promises';
import { repeat } from '@shellfleet/concurrency';
import type { Entry } from '@shellfleet/mailbox';
import { ATTRIBUTES, ensureShellfleetError, isMovable, ShellfleetError } from '@shellfleet/protocol';
import { traceOf } from '../run/open-payload.ts';
import { failWaiting } from './fail-waiting.ts';
import type { SessionParts } from './session-parts.ts';

/** Time for which an unreachable engine, which may be restarting, is retried before commands fail. */
const ENGINE_RETRY_MS = 20_000;
const ENGINE_POLL_MS = 1_000;
/** Interval of looks at what the start of a Pod waits for. */
const TELL_MS = 500;

/**
 * Opens and prepares the shell, and returns whether it is ready. Otherwise the waiting entries fail with the error or,
 * while this host opens no shells, wait for another host (`leaving`). `entry` is the one that needs the shell.
 */
export function makeReady(parts: SessionParts, leaving?: AbortSignal, entry?: Entry): Promise<boolean> {
  const { context, shell } = parts;
  const { traces } = context;
  if (traces === undefined || shell.ready) return openUntilReady(parts, leaving);
  const describeOpened = () => ({
    [ATTRIBUTES.sessionStart]: shell.start,
    [ATTRIBUTES.containerId]: shell.sandbox?.containerId,
  });
  return traces.open(entry && traceOf(entry, context), describeOpened, () => openUntilReady(parts, leaving));
}

async function openUntilReady(parts: SessionParts, leaving?: AbortSignal): Promise<boolean> {
  const { context, shell, announcements, hosting } = parts;
  const from = Date.now();
  // A wall clock that is set must not change how long the engine is waited for.
  const retryUntil = performance.now() + ENGINE_RETRY_MS;
  const signal = AbortSignal.any([hosting.lost, hosting.unwanted, ...(leaving === undefined ? [] : [leaving])]);
  const opens = !shell.hasState;
  if (shell.sandbox === undefined) await announcements.starting();
  for (;;) {
    try {
      refuseForbiddenStartup(parts);
      await tellWaits(parts, () => shell.makeReady(signal));
      shell.recordOpened({ from, to: Date.now() });
      if (opens) context.metrics?.sessionOpened(shell.start === 'warm' ? 'warm' : 'cold', Date.now() - from);
      await announcements.ready();
      return true;
    } catch (cause) {
      const error = ensureShellfleetError(cause);
      if (context.signal.aborted) return false;
      if (signal.aborted) {
        await shell.abandon();
        return false;
      }
      if (error.code === 'DOCKER_UNAVAILABLE' && !context.takesNew() && !shell.hasState) return false;
      if (error.code === 'DOCKER_UNAVAILABLE' && performance.now() < retryUntil) {
        await delay(ENGINE_POLL_MS);
        continue;
      }
      shell.recordOpened({ from, to: Date.now() });
      context.metrics?.sessionOpened('failed', Date.now() - from);
      context.logger.warn({ err: error }, 'session.start-failed');
      await shell.abandon();
      await failWaiting(parts, error);
      return false;
    }
  }
}

/** Reports what the start of a Pod waits for, while the shell is opened. */
async function tellWaits({ context, shell, announcements }: SessionParts, open: () => Promise<void>): Promise<void> {
  if (!isMovable(context.spec.policy.type)) return open();
  let told: string | undefined;
  const tell = async () => {
    const words = shell.sandbox?.waitsFor?.();
    if (words !== told) await announcements.waits(words);
    told = words;
  };
  const telling = repeat(tell, { everyMs: TELL_MS, onError: (err) => context.logger.warn({ err }, 'session.failed') });
  await open().finally(() => telling.close());
}

/** Throws if the rules forbid the startup commands. They may have changed since the entry was admitted. */
function refuseForbiddenStartup({ admission, context, shell }: SessionParts): void {
  if (admission.digest === '' || shell.ready) return;
  const reason = admission.refuseStartup();
  if (reason === undefined) return;
  const { session } = context.owner.keys;
  const message = `Session ${session} cannot start: ${context.redaction.value(reason)}`;
  throw new ShellfleetError('SESSION_START_FAILED', message);
}
