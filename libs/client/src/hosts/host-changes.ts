import type { FleetHostEventType, HostInfo } from '@shellfleet/protocol';

/** Returns what has changed about the hosts of a fleet between two lists of them, by host. */
export function hostChanges(
  before: readonly HostInfo[],
  now: readonly HostInfo[],
): { type: FleetHostEventType; hostId: string }[] {
  const known = new Map(before.map((host) => [host.id, host]));
  const listed = new Set(now.map(({ id }) => id));
  const left = before.filter(({ id }) => !listed.has(id)).map(({ id }) => ({ type: 'host.left' as const, hostId: id }));
  return [...left, ...now.flatMap((host) => changesOf(known.get(host.id), host))];
}

function changesOf(before: HostInfo | undefined, { id, state, cordoned }: HostInfo) {
  const types: FleetHostEventType[] = [];
  const isReached = state !== 'unreachable';
  const wasReached = before !== undefined && before.state !== 'unreachable';
  if (isReached && !wasReached) types.push('host.up');
  if (!isReached && wasReached) types.push('host.unreachable');
  if (isReached && state === 'draining' && before?.state !== 'draining') types.push('host.draining');
  if (state === 'up' && before?.state === 'draining') types.push('host.drain-undone');
  if (cordoned && !before?.cordoned) types.push('host.cordoned');
  if (!cordoned && before?.cordoned) types.push('host.uncordoned');
  return types.map((type) => ({ type, hostId: id }));
}
