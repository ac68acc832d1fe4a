import { type Matcher, MatcherInput } from 're2js';
import type { Findings, Rule, Source, View } from '../source.ts';
import { openStart } from './open-start.ts';
import type { Pattern } from './program.ts';
import type { TimeBudget } from './time-budget.ts';

const NEWLINE = 0x0a;
const MOST_BYTES_OF_A_CHARACTER = 4;

/** What a user's pattern matches: leftmost first, one match behind the other, as re2 says. */
export function customPattern(rule: Rule, pattern: Pattern, budget: TimeBudget): Source {
  return { scan: (view, findings) => budget.measure(rule, () => scan(rule, pattern, view, findings)) };
}

function scan(rule: Rule, pattern: Pattern, view: View, findings: Findings): void {
  const { bytes, leftFrom, to, end } = view;
  const undecidedFrom = startOfUndecided(pattern, view);
  const matcher = pattern.regex.matcher(MatcherInput.utf8(bytes.subarray(leftFrom, end)));
  let open: number | undefined;
  for (let from = view.from; from < to; ) {
    const match = nextMatch(matcher, from - leftFrom);
    const start = match === undefined ? end : match.start + leftFrom;
    if (start >= undecidedFrom && !view.complete) {
      // What is open behind the last match stays so, whatever was looked at before it.
      if (open === undefined || open < from) open = openStart(pattern, view, Math.max(from, undecidedFrom));
      if (open <= start && open < to) findings.open(rule, open);
      if (open <= start) return;
    }
    if (match === undefined || start >= to) return;
    findings.found(rule, start, start, match.end + leftFrom);
    from = match.end + leftFrom;
  }
}

function nextMatch(matcher: Matcher, from: number): { start: number; end: number } | undefined {
  return matcher.find(from) ? { start: matcher.start(), end: matcher.end() } : undefined;
}

/** Before it every start is decided: it lies before a newline that no match crosses, or too far back. */
function startOfUndecided({ matchesNewline, longest }: Pattern, { bytes, from, end }: View): number {
  const lineStart = matchesNewline ? from : Math.max(from, bytes.subarray(from, end).lastIndexOf(NEWLINE) + from + 1);
  // One character more: what stands right of a match may decide it.
  const longestBytes = (longest + 1) * MOST_BYTES_OF_A_CHARACTER;
  return Math.max(lineStart, end - longestBytes);
}
