import type { SessionInfo } from '@shellfleet/client';

/** Why the next command of a session does not run, for a table. */
export function whyWaiting({ noHostReason, heldCommandId, position, state, hostId }: SessionInfo): string {
  if (heldCommandId !== undefined) return `${heldCommandId} waits for an approval`;
  if (noHostReason !== undefined) return noHostReason;
  if (state === 'unreachable') return `its host ${hostId} does not answer`;
  if (position !== undefined) return 'all slots are taken';
  return state === 'busy' ? 'another command runs in it' : '-';
}

/** The same in few words, for a table that has the host and the commands of the session in other columns. */
export function whyWaitingInShort(info: SessionInfo): string {
  const { queuedCommands, heldCommandId, noHostReason, state } = info;
  if (queuedCommands === 0) return '-';
  if (heldCommandId !== undefined) return 'a person is asked';
  // What follows the first sentence is the details and the next step.
  if (noHostReason !== undefined) return noHostReason.replace(/\. .*|\.$/s, '');
  return state === 'unreachable' ? 'its host does not answer' : whyWaiting(info);
}
