import { lacksSealKey, type Session, type SessionInfo, ShellfleetError } from '@shellfleet/client';
import type { Terminal } from './terminal.ts';

const LOOK_EVERY_MS = 500;
/** A host whose worker is started again is away for a moment. */
const LOOKS_BEFORE_WORDS = 3;

/**
 * Shows the state of a session while its command prints nothing: progress for a person, and once, also without a terminal, why no host can
 * take it, and that it waits for an approval. It goes on waiting, because a host may come. Without the fleet's seal key it waits in vain: then `onHopeless` is called.
 */
export function watchWaiting(
  terminal: Terminal,
  session: Session,
  onHopeless?: (reason: ShellfleetError) => void,
): Disposable {
  const startedAt = Date.now();
  let reason: string | undefined;
  let looks = 0;
  let held: string | undefined;
  let isWatched = true;
  const look = async () => {
    const info = await session.info();
    if (!isWatched) return;
    looks = info.noHostReason !== undefined && info.noHostReason === reason ? looks + 1 : 1;
    reason = info.noHostReason;
    if (reason !== undefined && looks === LOOKS_BEFORE_WORDS) {
      if (lacksSealKey(info) && onHopeless !== undefined) return onHopeless(toKeyError(session.id, reason));
      terminal.say(`${reason} ${session.id} waits until one can.`);
    }
    const { heldCommandId } = info;
    if (heldCommandId !== undefined && heldCommandId !== held)
      terminal.say(
        `${heldCommandId} waits for an approval; \`shellfleet approvals watch\` shows why, and how to answer.`,
      );
    held = heldCommandId;
    terminal.progress(describe(info, Date.now() - startedAt));
  };
  const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS).unref();
  return {
    [Symbol.dispose]: () => {
      isWatched = false;
      clearInterval(timer);
      terminal.clearProgress();
    },
  };
}

function describe({ id, state, position, queuedCommands, heldCommandId }: SessionInfo, waitedMs: number): string {
  const place = position === undefined ? '' : `, number ${position} in the queue of sessions`;
  const isHeld = heldCommandId !== undefined;
  if (isHeld)
    return `${id}: a command waits for an approval, ${queuedCommands} waiting (${Math.round(waitedMs / 1_000)} s)`;
  const what = state === 'busy' ? 'running' : `${state}${place}, ${queuedCommands} waiting`;
  return `${id}: ${what} (${Math.round(waitedMs / 1_000)} s)`;
}

function toKeyError(sessionId: string, reason: string): ShellfleetError {
  return new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    `${reason} Nothing was run. Set SHELLFLEET_SEAL_KEY to the key of the hosts, or remove it on the machine of \`shellfleet up\`.`,
    { sessionId },
  );
}
