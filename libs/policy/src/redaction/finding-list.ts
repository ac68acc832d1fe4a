import type { Findings, Rule } from './source.ts';

export interface Finding {
  rule: Rule;
  from: number;
  start: number;
  end: number;
}

/** Findings whose matches overlap. They are settled together or not at all. */
export interface Span {
  from: number;
  end: number;
  findings: Finding[];
}

/** The findings of all sources in one view. */
export class FindingList implements Findings {
  #findings: Finding[] = [];
  readonly #lastEnds = new Map<Rule, number>();
  openAt = Number.POSITIVE_INFINITY;
  openRule: Rule | undefined;

  clear(): void {
    if (this.#findings.length > 0) {
      this.#findings = [];
      this.#lastEnds.clear();
    }
    this.openAt = Number.POSITIVE_INFINITY;
    this.openRule = undefined;
  }

  found(rule: Rule, from: number, start: number, end: number): void {
    this.#findings.push({ rule, from, start, end });
    this.#lastEnds.set(rule, end);
  }

  covers(rule: Rule, at: number): boolean {
    return (this.#lastEnds.get(rule) ?? 0) > at;
  }

  open(rule: Rule, at: number): void {
    if (at > this.openAt) return;
    if (at < this.openAt || this.openRule === undefined || rule.rank < this.openRule.rank) this.openRule = rule;
    this.openAt = at;
  }

  /** The spans in order of position, whatever the order in which they were found. */
  spans(): Span[] {
    if (this.#findings.length === 0) return [];
    const spans: Span[] = [];
    for (const finding of this.#findings.sort((a, b) => a.from - b.from)) {
      const last = spans.at(-1);
      if (last && finding.from < last.end) {
        last.findings.push(finding);
        last.end = Math.max(last.end, finding.end);
      } else {
        spans.push({ from: finding.from, end: finding.end, findings: [finding] });
      }
    }
    return spans;
  }
}

/** The findings of a span, grouped: findings that overlap become one replacement. */
export function placesOf({ findings }: Span): Finding[][] {
  const places: Finding[][] = [];
  let end = -1;
  for (const finding of findings.toSorted((a, b) => a.start - b.start)) {
    if (places.length > 0 && finding.start < end) places.at(-1)!.push(finding);
    else places.push([finding]);
    end = Math.max(end, finding.end);
  }
  return places;
}

export function strongest<T extends { rule: Rule }>(candidates: readonly T[]): T {
  return candidates.reduce((best, next) => (next.rule.rank < best.rule.rank ? next : best));
}
