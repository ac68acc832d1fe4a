// Uids for sessions, one each. The kernel counts some limits per uid (inotify instances, memory of pipes), for all
// containers together.
//
// UIDS-1. No two sandboxes of this host that may be alive have the same uid.
// UIDS-2. A uid is used again as late as possible: processes and files of its last session may still be going away.

export interface UidRange {
  first: number;
  last: number;
}

export class SessionUids {
  readonly #range: UidRange;
  readonly #taken = new Map<string, number>();
  #next: number;

  constructor(range: UidRange) {
    this.#range = range;
    this.#next = range.first;
  }

  /** Returns a free uid, now taken by the sandbox; undefined when all are taken. */
  take(sandboxId: string): number | undefined {
    const taken = new Set(this.#taken.values());
    const { first, last } = this.#range;
    for (let tried = first; tried <= last; tried += 1) {
      const uid = this.#next;
      this.#next = uid >= last ? first : uid + 1;
      if (taken.has(uid)) continue;
      this.#taken.set(sandboxId, uid);
      return uid;
    }
    return undefined;
  }

  /** A sandbox of an earlier process of this worker. */
  keep(sandboxId: string, uid: number): void {
    this.#taken.set(sandboxId, uid);
  }

  release(sandboxId: string): void {
    this.#taken.delete(sandboxId);
  }
}
