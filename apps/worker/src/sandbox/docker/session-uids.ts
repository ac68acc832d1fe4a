// Assigns a uid to each session, because the kernel counts some limits (inotify instances, memory of pipes) per uid,
// over all containers.
//
// UIDS-1. No two sandboxes of this host that may be alive have the same uid.
// UIDS-2. A uid is reused as late as possible: processes and files of its last session may still be going away.

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

  /** Takes a free uid for the sandbox. Returns undefined when all are taken. */
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

  /** Marks the uid of a sandbox that an earlier process of this worker created. */
  keep(sandboxId: string, uid: number): void {
    this.#taken.set(sandboxId, uid);
  }

  release(sandboxId: string): void {
    this.#taken.delete(sandboxId);
  }
}
