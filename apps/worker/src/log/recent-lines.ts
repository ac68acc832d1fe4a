import { Notifier } from '@shellfleet/concurrency';
import type { WorkerLogPage, WorkerLogRequest } from '@shellfleet/protocol';

// RECENT-1. The lines take at most `maxChars`. The oldest are dropped first, and readers are told their number.
// RECENT-2. A page is small enough for one reply, and has at least one line, whatever that one's length.

const MOST_CHARS = 1024 * 1024;
const PAGE_CHARS = 128 * 1024;

/** The last lines of this process's log, for operators who ask for them. */
export class RecentLines {
  /** Id of the process. */
  readonly boot: string;
  readonly #maxChars: number;
  readonly #added = new Notifier();
  #lines: string[] = [];
  /** Number of lines that were dropped. */
  #dropped = 0;
  #chars = 0;

  constructor(boot: string, maxChars = MOST_CHARS) {
    this.boot = boot;
    this.#maxChars = maxChars;
  }

  push(line: string): void {
    const text = line.endsWith('\n') ? line.slice(0, -1) : line;
    this.#lines.push(text);
    this.#chars += text.length;
    if (this.#chars > this.#maxChars) this.#drop();
    this.#added.notify();
  }

  /** Returns the next page of the lines that are asked for. Waits at most `waitMs` for one, if the request does. */
  async read(request: WorkerLogRequest, waitMs: number): Promise<WorkerLogPage> {
    const endsAt = performance.now() + waitMs;
    for (let page = this.#page(request); ; page = this.#page({ ...request, after: page.next })) {
      const timeoutMs = endsAt - performance.now();
      if (page.lines.length > 0 || page.missed > 0 || request.waits !== true || timeoutMs <= 0) return page;
      await this.#added.wait({ timeoutMs });
    }
  }

  #page({ after, since, tail }: WorkerLogRequest): WorkerLogPage {
    const end = this.#dropped + this.#lines.length;
    // The first line that is asked for, counted from the beginning of the process.
    const first = after?.boot === this.boot ? after.line : tail === undefined ? 0 : Math.max(0, end - tail);
    let at = Math.min(Math.max(first, this.#dropped), end);
    const keptAll = this.#isSince(this.#lines[0], since);
    if (since !== undefined) while (at < end && !this.#isSince(this.#lines[at - this.#dropped], since)) at += 1;
    const missed = keptAll ? Math.max(0, this.#dropped - first) : 0;
    const lines: string[] = [];
    for (let chars = 0; at < end; at += 1) {
      const line = this.#lines[at - this.#dropped] ?? '';
      chars += line.length;
      if (lines.length > 0 && chars > PAGE_CHARS) break;
      lines.push(line);
    }
    return { next: { boot: this.boot, line: at }, lines, missed, more: at < end };
  }

  /** Returns whether a line was written at the time or later. */
  #isSince(line: string | undefined, since: number | undefined): boolean {
    if (since === undefined || line === undefined) return true;
    return Number(/"time":(\d+)/.exec(line)?.[1] ?? 0) >= since;
  }

  /** Drops a quarter, because to drop single lines would move all others each time. */
  #drop(): void {
    let count = 0;
    while (this.#chars > this.#maxChars * 0.75 && count < this.#lines.length - 1) {
      this.#chars -= this.#lines[count]?.length ?? 0;
      count += 1;
    }
    this.#lines = this.#lines.slice(count);
    this.#dropped += count;
  }
}
