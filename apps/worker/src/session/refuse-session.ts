import type { Adopted } from '@shellfleet/mailbox';
import type { SessionJob } from '@shellfleet/placement';
import { ShellfleetError } from '@shellfleet/protocol';
import { finishLost } from '../run/run-entry.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { giveUp } from './end-session.ts';
import { failWaiting } from './fail-waiting.ts';
import type { SessionParts } from './session-parts.ts';

/**
 * Fails the entries of a session whose job differs from its sealed spec, and gives it up. The next submit adds a valid
 * job.
 */
export async function refuseSession(
  differing: readonly string[],
  adopted: Adopted,
  found: Sandbox | undefined,
  parts: SessionParts,
): Promise<void> {
  const { context, job } = parts;
  context.logger.error({ differing }, 'session.refused');
  await found?.remove();
  // An earlier owner started this entry, from a job that did not differ from the spec.
  if (adopted.running !== undefined) {
    await finishLost(adopted.running, 'container-removed', context);
  }
  const error = jobRefused(job, differing);
  do await failWaiting(parts, error);
  while (!context.signal.aborted && !(await giveUp(parts, 'its job was refused', () => false)));
}

function jobRefused({ session }: SessionJob, differing: readonly string[]): ShellfleetError {
  return new ShellfleetError(
    'SESSION_SPEC_INVALID',
    `The job of session ${session} differs from its sealed spec in its ${differing.join(', ')}, so nothing was run. It was changed in Redis, and not by Shellfleet. Find out what else writes there, then submit the command again.`,
    { issues: differing.map((part) => ({ path: `job.${part}`, message: 'differs from the sealed spec' })) },
  );
}
