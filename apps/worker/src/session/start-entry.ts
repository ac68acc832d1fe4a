import { decideStarted } from './decide-started.ts';
import { makeReady } from './make-ready.ts';
import type { SessionParts } from './session-parts.ts';
import { LOOK, type Step } from './step.ts';
import { untilHeld } from './until-held.ts';

/**
 * Checks that an entry which counts as started may reach the shell: the shell is ready, the lease is held (SESSION-2),
 * and the entry is admitted (ADMIT-8). Otherwise it ends.
 */
export async function startEntry(
  { entry, orElse }: Extract<Step, { type: 'start' }>,
  parts: SessionParts,
): Promise<Step> {
  const { context, lease, shell } = parts;
  // It may have been taken for a shell that has ended since.
  if (!shell.ready && !(await makeReady(parts))) return { type: 'end', entry, how: orElse };
  if (!(await untilHeld(lease, context.signal))) return LOOK;
  const refused = await decideStarted(entry, parts);
  return refused === undefined ? { type: 'run', entry, from: 'start' } : { type: 'end', entry, how: refused };
}
