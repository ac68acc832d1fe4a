import type { History, SessionHistory, Violation } from '../history/history.ts';
import { type OperationHistory, operationsOf } from '../history/operation-history.ts';
import { checkEnds } from './check-ends.ts';
import { checkMarks } from './check-marks.ts';
import { checkOutput } from './check-output.ts';
import { checkShells } from './check-shells.ts';
import { Permits } from './permits.ts';

/** A session and the faults that may have affected it, as the checks read them. */
export interface Case {
  session: SessionHistory;
  operations: OperationHistory[];
  permits: Permits;
  /** Whether terminal events of old commands are gone. */
  forgets: boolean;
  /** Ids of the commands that a host began. */
  begun: ReadonlySet<string>;
  report(rule: string, text: string): void;
}

const RULES = [checkEnds, checkMarks, checkOutput, checkShells];

/** Returns every violation of a promise in the history. */
export function check(history: History): Violation[] {
  const violations: Violation[] = [];
  const permits = new Permits(history.faults);
  const operations = operationsOf(history);
  const begun = new Set(history.begun);
  for (const session of history.sessions) {
    const report = (rule: string, text: string) => violations.push({ rule, session: session.session, text });
    const own = operations.get(session.session) ?? [];
    for (const rule of RULES) rule({ session, operations: own, permits, forgets: history.forgets, begun, report });
  }
  return violations;
}
