import type { ReceiptPart, Result, SessionInfo } from '@shellfleet/client';
import { describeMs, describeSize } from '../units.ts';
import type { CommandHistory } from './read-history.ts';

/** Time that the fleet itself may need for a step. Less is not worth a sentence of its own. */
const USUAL_MS = 100;

export type HowOpened = Pick<SessionInfo, 'start' | 'coldReason'>;

const COLD: Readonly<Record<NonNullable<SessionInfo['coldReason']>, string>> = {
  workspace: 'only a sandbox of its own can have its folder of the host',
  user: 'only a sandbox of its own can have its user',
  network: 'only a sandbox of its own can have its network',
  'no-pool': 'no pool of its host has its image, limits and network',
  empty: 'the pool of its host had no sandbox ready',
};

/** Says in words where the time of a command went. `start` is how its shell began, if that is known. */
export function describeReceipt(result: Result, history: CommandHistory, start: HowOpened = {}): string[] {
  const parts = mergeSteps(result.receipt?.parts ?? []);
  const most = parts.reduce<ReceiptPart | undefined>(
    (found, part) => (part.ms > (found?.ms ?? 0) ? part : found),
    undefined,
  );
  const totalMs = parts.reduce((sum, { ms }) => sum + ms, 0);
  const lead =
    most === undefined || most.step === 'running' || totalMs < USUAL_MS
      ? []
      : [`${Math.round((100 * most.ms) / totalMs)} % of its time was not the run itself but ${NOUNS[most.step]}.`];
  const isUnstarted = result.receipt !== undefined && result.receipt.startedAt === undefined;
  return [
    ...lead,
    ...parts.flatMap((part) => describePart(part, result, history, start) ?? []),
    ...(isUnstarted ? ['It was never started.'] : []),
    ...describeUsage(result),
  ];
}

function describeUsage({ usage }: Result): string[] {
  if (usage === undefined) return [];
  const { cpuMs, peakMemoryBytes } = usage;
  return [
    `Meanwhile its sandbox used ${describeMs(cpuMs)} of processor time, and its highest memory up to its end was ${describeSize(peakMemoryBytes)}.`,
  ];
}

/** Adds up the parts of each step, at the place of its first part. */
function mergeSteps(parts: readonly ReceiptPart[]): ReceiptPart[] {
  const merged = new Map<ReceiptPart['step'], ReceiptPart>();
  for (const part of parts) merged.set(part.step, { ...part, ms: part.ms + (merged.get(part.step)?.ms ?? 0) });
  return [...merged.values()];
}

const NOUNS: Readonly<Record<ReceiptPart['step'], string>> = {
  slot: 'the wait for a slot',
  earlier: 'the wait for earlier commands of its session',
  approval: 'the wait for a person',
  image: 'the pull of its image',
  opening: 'the opening of its shell',
  attempt: 'an earlier attempt',
  waiting: 'a wait without a recorded cause',
  running: 'the run',
  unknown: 'time of which the end of the run is not known',
  storing: 'the storing of its output and Result',
};

function describePart(
  { step, ms }: ReceiptPart,
  result: Result,
  history: CommandHistory,
  start: HowOpened,
): string | undefined {
  const time = describeMs(ms);
  switch (step) {
    case 'slot':
      return `Its session waited ${time} for a slot of a host.`;
    case 'earlier':
      return `It waited ${time} for earlier commands of its session, which run one at a time${last(history)}.`;
    case 'approval':
      return `A person was asked about it for ${time}${answered(history)}.`;
    case 'image':
      return `Its host pulled its image for ${time}.`;
    case 'opening':
      return `Its shell was opened for it in ${time}${opened(start)}.`;
    case 'attempt':
      return `Until the attempt that counts began, ${time} went into an earlier one${lost(history)}.`;
    case 'waiting':
      if (ms < USUAL_MS) return `The fleet itself needed ${time} before the start.`;
      return `It waited ${time} for a cause that nobody recorded${away(history)}.`;
    case 'running':
      return `It ran for ${time}${where(result)}${firstOutput(result)}${adopted(history)}.`;
    case 'unknown':
      return `It had started, and its Result was stored ${time} later; how long of that it ran is not known${lost(history)}.`;
    case 'storing':
      if (ms < USUAL_MS) return undefined;
      return `From its end until its Result was stored it took ${time}${away(history)}.`;
  }
}

const last = ({ earlierId }: CommandHistory) => (earlierId === undefined ? '' : `; ${earlierId} was the last of them`);

function answered({ answer }: CommandHistory): string {
  if (answer === undefined) return '';
  const { decision, answeredBy = 'somebody', scope } = answer;
  if (decision === 'expired') return ', and nobody answered in time';
  if (decision === 'denied') return `, and ${answeredBy} denied it`;
  return `, and ${answeredBy} approved it${scope === undefined || scope === 'command' ? '' : ` (scope ${scope})`}`;
}

function opened({ start, coldReason }: HowOpened): string {
  if (start === 'warm') return ', from a pool that had it ready';
  return coldReason === undefined ? '' : `, cold: ${COLD[coldReason]}`;
}

const lost = ({ lossReason }: CommandHistory) =>
  lossReason === undefined ? '' : `; its shell was lost: ${lossReason}`;

function away({ unreachable, adopted: adoption }: CommandHistory): string {
  const [host] = unreachable;
  if (host !== undefined) return `; its host ${host} did not answer in that time`;
  return adoption === undefined ? '' : '; its worker was replaced in that time';
}

const where = ({ hostId }: Result) => (hostId === null ? '' : ` on the host ${hostId}`);

function firstOutput({ receipt }: Result): string {
  const ms = receipt?.firstOutputMs;
  return ms === undefined ? '' : `; its first output came after ${describeMs(ms)}`;
}

const adopted = ({ adopted: when }: CommandHistory) =>
  when === 'running' ? '; its worker was replaced meanwhile, and it went on' : '';
