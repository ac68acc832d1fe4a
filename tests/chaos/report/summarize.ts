import { type FaultKind, PROMISES } from '../check/promises.ts';
import type { RoundReport } from '../drive/run-round.ts';
import type { ClientEvent, Fault, Violation } from '../history/history.ts';

/** Summary of a run, without its histories. */
export interface Summary {
  seed: number;
  startedAt: string;
  endedAt: string;
  rounds: RoundSummary[];
  totals: Counts;
  kinds: KindSummary[];
}

export interface Counts {
  commands: number;
  results: number;
  refusals: number;
  losses: number;
  faults: number;
  violations: number;
}

export interface RoundSummary extends Counts {
  index: number;
  kind: string;
  seed: number;
  startedAt: number;
  endedAt: number;
  timeline: Fault[];
  /** Number of Results in each second. */
  resultsPerSecond: number[];
  broken: Violation[];
}

export interface KindSummary {
  kind: string;
  event: string;
  times: number;
  notRun: string[];
  recoveryMs: Spread | null;
}

interface Spread {
  count: number;
  p50: number;
  p95: number;
  most: number;
}

export function summarize(seed: number, reports: RoundReport[]): Summary {
  const rounds = reports.map(summarizeRound);
  const sum = (count: keyof Counts) => rounds.reduce((total, round) => total + round[count], 0);
  return {
    seed,
    startedAt: new Date(reports[0]?.startedAt ?? 0).toISOString(),
    endedAt: new Date(reports.at(-1)?.endedAt ?? 0).toISOString(),
    rounds,
    totals: {
      commands: sum('commands'),
      results: sum('results'),
      refusals: sum('refusals'),
      losses: sum('losses'),
      faults: sum('faults'),
      violations: sum('violations'),
    },
    kinds: Object.entries(PROMISES).map(([kind, { event }]) => summarizeKind(kind as FaultKind, event, reports)),
  };
}

function summarizeRound(report: RoundReport, index: number): RoundSummary {
  const { kind, seed, startedAt, endedAt, history, violations } = report;
  const of = (type: ClientEvent['type']) => history.clientEvents.filter((event) => event.type === type);
  const results = of('result');
  const resultsPerSecond = Array.from({ length: Math.ceil((endedAt - startedAt) / 1_000) }, () => 0);
  for (const { at } of results) {
    const second = Math.floor((at - startedAt) / 1_000);
    if (second in resultsPerSecond) resultsPerSecond[second] = (resultsPerSecond[second] ?? 0) + 1;
  }
  return {
    index,
    kind,
    seed,
    startedAt,
    endedAt,
    commands: new Set(of('accepted').map(({ op }) => op)).size,
    results: new Set(results.map(({ op }) => op)).size,
    refusals: of('refused').length,
    losses: results.filter((event) => event.type === 'result' && event.result.outcome === 'lost').length,
    faults: history.faults.filter(({ notRun }) => notRun === undefined).length,
    violations: violations.length,
    timeline: history.faults,
    resultsPerSecond,
    broken: violations,
  };
}

function summarizeKind(kind: FaultKind, event: string, reports: RoundReport[]): KindSummary {
  const planned = reports.flatMap(({ history }) => history.faults.filter((fault) => fault.kind === kind));
  const times = reports.flatMap(({ history }) =>
    history.faults
      .filter((fault) => fault.kind === kind && fault.notRun === undefined)
      .flatMap((fault) => recoveriesFrom(fault, history.clientEvents)),
  );
  return {
    kind,
    event,
    times: planned.filter(({ notRun }) => notRun === undefined).length,
    notRun: [...new Set(planned.flatMap(({ notRun }) => notRun ?? []))],
    recoveryMs: toSpread(times),
  };
}

/**
 * Returns the time until the next Result for every session that the fault may have affected and that had work when the
 * fault was healed. The command's own time, up to 1.5 s, is included.
 */
function recoveriesFrom(fault: Fault, events: ClientEvent[]): number[] {
  return [...Map.groupBy(events, ({ op }) => sessionOf(op))].flatMap(([session, own]) => {
    if (!touches(fault, session, own)) return [];
    const ended = new Map(own.filter(({ type }) => type === 'result').map(({ op, at }) => [op, at]));
    const hadWork = own.some(
      ({ type, op, at }) => type === 'submit' && at <= fault.to && (ended.get(op) ?? 0) > fault.to,
    );
    const next = Math.min(...[...ended.values()].filter((at) => at > fault.to));
    return hadWork ? [next - fault.to] : [];
  });
}

function touches({ kind, target, from }: Fault, session: string, events: ClientEvent[]): boolean {
  if (kind.startsWith('client-')) return session.startsWith(`${target}-`);
  if (kind.startsWith('container-')) return session === target;
  if (kind.startsWith('redis-') || kind === 'dockerd-restart' || kind === 'host-disk-full') return true;
  const last = events.findLast((event) => event.type === 'result' && event.at <= from);
  return last?.type === 'result' && last.result.hostId === target;
}

const sessionOf = (op: string): string => op.slice(0, op.lastIndexOf('.'));

function toSpread(values: number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number;
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), most: at(1) };
}
