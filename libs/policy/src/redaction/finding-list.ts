import type { Findings, Rule, ScanWindow, Source } from './source.ts';

export interface Finding {
  source: Source | undefined;
  rule: Rule;
  from: number;
  start: number;
  end: number;
}

/** Findings whose matches overlap. Either all of them are settled or none is. */
export interface Span {
  from: number;
  end: number;
  findings: Finding[];
}

/** The findings of all sources in one window. */
export class FindingList implements Findings {
  #findings: Finding[] = [];
  readonly #lastEnds = new Map<Rule, number>();
  /**
   * Rule and end of the last finding. Most findings have the rule of the one before, so they enter #lastEnds only when
   * the rule changes.
   */
  #lastRule: Rule | undefined;
  #lastEnd = 0;
  openAt = Number.POSITIVE_INFINITY;
  openRule: Rule | undefined;
  #source: Source | undefined;

  /** Adds the findings of one source. */
  search(source: Source, window: ScanWindow): void {
    this.#source = source;
    source.scan(window, this);
  }

  clear(): void {
    if (this.#findings.length > 0) {
      this.#findings = [];
      this.#lastEnds.clear();
      this.#lastRule = undefined;
    }
    this.openAt = Number.POSITIVE_INFINITY;
    this.openRule = undefined;
  }

  found(rule: Rule, from: number, start: number, end: number): void {
    // Several written forms of one secret may match at the same place.
    const last = this.#findings[this.#findings.length - 1];
    if (last?.rule === rule && last.from === from && last.start === start && last.end === end) return;
    this.#findings.push({ source: this.#source, rule, from, start, end });
    if (this.#lastRule !== undefined && this.#lastRule !== rule) this.#lastEnds.set(this.#lastRule, this.#lastEnd);
    this.#lastRule = rule;
    this.#lastEnd = end;
  }

  covers(rule: Rule, at: number): boolean {
    return (rule === this.#lastRule ? this.#lastEnd : (this.#lastEnds.get(rule) ?? 0)) > at;
  }

  open(rule: Rule, at: number): void {
    if (at > this.openAt) return;
    if (at < this.openAt || this.openRule === undefined || rule.rank < this.openRule.rank) this.openRule = rule;
    this.openAt = at;
  }

  /** Tells whether `others` are exactly these findings, in the same order. */
  areSame(others: readonly Finding[]): boolean {
    return (
      others.length === this.#findings.length &&
      others.every((other, index) => {
        const { rule, from, start, end } = this.#findings[index]!;
        return other.rule === rule && other.from === from && other.start === start && other.end === end;
      })
    );
  }

  /** Returns the spans in order of position. */
  spans(): Span[] {
    if (this.#findings.length === 0) return [];
    const spans: Span[] = [];
    let last: Span | undefined;
    for (const finding of this.#findings.sort((a, b) => a.from - b.from)) {
      if (last && finding.from < last.end) {
        last.findings.push(finding);
        last.end = Math.max(last.end, finding.end);
      } else {
        last = { from: finding.from, end: finding.end, findings: [finding] };
        spans.push(last);
      }
    }
    return spans;
  }
}

/** Groups the findings of a span. Findings that overlap become one replacement. */
export function placesOf({ findings }: Span): Finding[][] {
  if (findings.length === 1) return [findings];
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
  if (candidates.length === 1) return candidates[0]!;
  return candidates.reduce((best, next) => (next.rule.rank < best.rule.rank ? next : best));
}
