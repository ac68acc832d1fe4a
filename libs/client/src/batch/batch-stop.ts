import type { EndedBy } from './task-result.ts';

/** Reason of a signal that ends tasks. */
export class BatchStop extends Error {
  readonly by: EndedBy;

  constructor(by: EndedBy) {
    super(SAYS[by]);
    this.by = by;
  }
}

const SAYS: Record<EndedBy, string> = {
  deadline: 'the deadline of the task has passed',
  'batch-deadline': 'the deadline of the batch has passed',
  failure: 'another task of the batch did not pass',
  signal: 'the batch was stopped',
};

/** Returns why an aborted signal ends tasks. A caller's own signal may have any reason. */
export const stopOf = ({ reason }: AbortSignal): EndedBy => (reason instanceof BatchStop ? reason.by : 'signal');

/** Signal for one task: it aborts with the signal of the batch, or at the task's own deadline. */
export class TaskStop implements Disposable {
  readonly signal: AbortSignal;
  readonly #batch: AbortSignal;
  readonly #forward: () => void;
  readonly #timer: NodeJS.Timeout | undefined;

  constructor(batch: AbortSignal, deadlineMs: number | undefined) {
    const controller = new AbortController();
    this.signal = controller.signal;
    this.#batch = batch;
    this.#forward = () => controller.abort(batch.reason);
    batch.addEventListener('abort', this.#forward, { once: true });
    if (batch.aborted) this.#forward();
    if (deadlineMs !== undefined)
      this.#timer = setTimeout(() => controller.abort(new BatchStop('deadline')), deadlineMs).unref();
  }

  [Symbol.dispose](): void {
    this.#batch.removeEventListener('abort', this.#forward);
    clearTimeout(this.#timer);
  }
}
