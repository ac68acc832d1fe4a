import type { SessionInfo } from '@shellfleet/client';

/** Returns why the next command of a session does not run. */
export function whyWaiting(info: SessionInfo): string {
  const { noHostReason, heldCommandId, atQuota, position, state, hostId, waitsFor } = info;
  if (heldCommandId !== undefined) return `${heldCommandId} waits for an approval`;
  if (noHostReason !== undefined) return noHostReason;
  if (state === 'unreachable') return `its host ${hostId} does not answer`;
  if (waitsFor !== undefined) return `its Pod waits: ${waitsFor}`;
  if (atQuota !== undefined) return `tenant has ${atQuota.used} of ${atQuota.limit} sessions`;
  if (position !== undefined) return 'all slots are taken';
  return state === 'busy' ? 'another command runs in it' : '-';
}

/** Returns the reason in few words, for a table that has columns for the host and the commands. */
export function whyWaitingInShort(info: SessionInfo): string {
  const { queuedCommands, heldCommandId, noHostReason, state, waitsFor } = info;
  if (queuedCommands === 0) return '-';
  if (heldCommandId !== undefined) return 'a person is asked';
  // The first sentence is the reason, and details follow.
  if (noHostReason !== undefined) return noHostReason.replace(/\. .*|\.$/s, '');
  if (state !== 'unreachable' && waitsFor !== undefined) return `its Pod waits: ${waitsFor.replace(/[,.] .*/s, '')}`;
  return state === 'unreachable' ? 'its host does not answer' : whyWaiting(info);
}
