import type { Approval, HostInfo, SessionInfo } from '@shellfleet/client';
import { describeDuration, describePull } from '../units.ts';
import { reasonToWait } from '../watch-waiting.ts';

/** What is known about a session that waits. */
export interface SessionWait {
  info: SessionInfo;
  hosts: readonly HostInfo[];
  /** The questions that the session asks. */
  questions: readonly Pick<Approval, 'id' | 'reason' | 'expiresAt'>[];
}

/** Says in words why a session waits now, and for what. */
export function describeWait({ info, hosts, questions }: SessionWait): string[] {
  const { id, state, queuedCommands, closedAt, closeReason, runningCommandId, hostId } = info;
  if (state === 'closed') return [`Session ${id} was closed at ${closedAt}: ${closeReason}.`];
  if (state === 'closing') return [`Session ${id} is being closed.`];
  const why = reasonToWait(id, info);
  if (why?.kind === 'held') return [why.says, ...questions.map(describeQuestion)];
  if (why?.kind === 'slot')
    return [...describeTurn(info, why.says), ...describeWanted(info), ...hosts.map(describeHost)];
  if (why !== undefined)
    return [why.says, ...(info.position === undefined ? [] : describeEta(info)), ...describeWanted(info)];
  if (runningCommandId !== undefined) {
    const behind =
      queuedCommands === 0 ? '' : ` ${count(queuedCommands, 'command')} behind it, as a session runs one at a time.`;
    return [`${runningCommandId} runs on the host ${hostId}.${behind}`];
  }
  if (state === 'starting') return [`Its shell is being opened on the host ${hostId}.`, ...describePulls(info, hosts)];
  if (queuedCommands > 0)
    return [`${count(queuedCommands, 'command')} in ${id}, and nothing is known that delays the first.`];
  const has = hostId === null ? 'it has no slot, and needs none' : `its shell on the host ${hostId} is ready`;
  return [`Nothing waits in session ${id}: ${has}.`];
}

const count = (number: number, noun: string) => `${number} ${noun}${number === 1 ? ' waits' : 's wait'}`;

function describeQuestion({ id, reason, expiresAt }: SessionWait['questions'][number]): string {
  return `The question ${id}, until ${expiresAt}: ${reason}`;
}

function describeTurn(info: SessionInfo, says: string): string[] {
  if (info.etaMs !== 0) return [says, ...describeEta(info)];
  return [
    `${info.id} waits for a slot, and by the last heartbeats one is free for it, so a host takes it at any moment.`,
  ];
}

function describeEta({ etaMs }: SessionInfo): string[] {
  if (etaMs === undefined) return ['How long that takes is not known yet, because no slot was freed recently.'];
  const seconds = Math.max(1, Math.ceil(etaMs / 1_000));
  return [`If slots are freed as often as recently, it has one in about ${describeDuration(1_000 * seconds)}.`];
}

function describeWanted({ needs, wishes }: SessionInfo): string[] {
  const wanted = Object.entries(needs ?? {}).map(([field, value]) => `${field} ${value}`);
  const wished = [
    ...(wishes?.image === undefined ? [] : [`that has the image ${wishes.image}`]),
    ...(wishes?.near === undefined ? [] : [`that has session ${wishes.near}`]),
  ];
  return [
    ...(wanted.length === 0 ? [] : [`Its host must accept: ${wanted.join(', ')}.`]),
    ...(wished.length === 0 ? [] : [`For 2 s from when it is next, it is left to a host ${wished.join(' or ')}.`]),
  ];
}

/** Says whether a host could take a session, and why not. */
function describeHost({ id, state, cordoned, slots, free, gate, problems = [] }: HostInfo): string {
  const [problem] = problems;
  if (state === 'unreachable') return `Host ${id} does not answer.`;
  if (state === 'draining') return `Host ${id} is draining.`;
  if (cordoned) return `Host ${id} is cordoned.`;
  if (problem !== undefined) return `Host ${id} takes no new session: ${problem}`;
  if (gate?.reason) return `Host ${id} takes no new session: ${gate.reason}`;
  return `Host ${id} has ${free} of ${slots} slots free.`;
}

function describePulls({ hostId }: SessionInfo, hosts: readonly HostInfo[]): string[] {
  const pulls = hosts.find(({ id }) => id === hostId)?.pulls ?? [];
  return pulls.length === 0 ? [] : [`The host pulls images: ${pulls.map(describePull).join(', ')}.`];
}
