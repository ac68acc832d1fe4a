import type { Findings, Rule, ScanWindow, Source } from '../source.ts';
import { PatternMachine, type SearchResult } from './machine.ts';
import type { Pattern } from './program.ts';
import type { TimeBudget } from './time-budget.ts';

const NEWLINE = 0x0a;
const WORTH_A_TEST_BYTES = 4096;
const MOST_BYTES_OF_A_CHARACTER = 4;

/** Finds the matches of a user's pattern as re2 defines them: leftmost-first, without overlaps. */
export function customPattern(rule: Rule, pattern: Pattern, budget: TimeBudget): Source {
  const machine = new PatternMachine(pattern);
  return {
    scan: (window, findings) => budget.measure(rule, () => scan(rule, pattern, machine, window, findings)),
    mayReadLeftOf: () => pattern.readsAround,
  };
}

function scan(rule: Rule, pattern: Pattern, machine: PatternMachine, window: ScanWindow, findings: Findings): void {
  for (let from = window.from; from < window.to; ) {
    const outcome = next(pattern, machine, window, from);
    if (outcome.type === 'open') findings.open(rule, outcome.at);
    if (outcome.type !== 'match') return;
    findings.found(rule, outcome.start, outcome.start, outcome.end);
    from = outcome.end;
  }
}

function next(pattern: Pattern, machine: PatternMachine, window: ScanWindow, from: number): SearchResult {
  const { bytes, leftFrom, to, end, complete } = window;
  if (to - from < WORTH_A_TEST_BYTES) return machine.run(window, from, to);
  // re2js finds much faster than PatternMachine that there is no match. If so, only text near the end is searched for
  // open starts.
  const text = bytes.subarray(Math.max(leftFrom, from - MOST_BYTES_OF_A_CHARACTER), end);
  if (pattern.regex.test(text)) return machine.run(window, from, to);
  return complete ? { type: 'none' } : machine.run(window, startOfUndecided(pattern, window, from), to);
}

/**
 * Returns the earliest offset at which an open start is possible: after the last newline, and not further back than the
 * longest match.
 */
function startOfUndecided({ matchesNewline, longest }: Pattern, { bytes, end }: ScanWindow, from: number): number {
  const lineStart = matchesNewline ? from : Math.max(from, bytes.subarray(from, end).lastIndexOf(NEWLINE) + from + 1);
  // One character is added, because an assertion may depend on the character after the match.
  const longestBytes = (longest + 1) * MOST_BYTES_OF_A_CHARACTER;
  return Math.max(lineStart, end - longestBytes);
}
