import { type Attributes, type Link, type Span, type SpanContext, SpanKind } from '@opentelemetry/api';
import type { Entry } from '@shellfleet/mailbox';
import {
  ATTRIBUTES,
  nameSpan,
  SPANS,
  type TraceContext,
  toCommandId,
  WAIT_SPANS,
  type Wait,
  type WireResult,
} from '@shellfleet/protocol';
import { beginSpan, contextOf, fail, runInSpan } from './spans.ts';

// The spans of one session on this host. One entry has spans at a time, as one runs at a time.
// TRACE-1. Spans of an entry are below the span that submitted it, with times of this host's clock.
// TRACE-2. Attributes have no script, output, path or variable.

/** A wait of an entry, by the clock of Redis. */
interface WaitInterval {
  wait: Wait;
  from: number;
  to: number;
}

export interface TracedSession {
  session: string;
  host: string;
  fence: number;
  /** Converts a time of Redis to one of this host. */
  toHost(at: number): number;
}

interface EntrySpans {
  id: string;
  process: Span;
  run?: Span;
  runFrom: number;
  store?: Span;
}

export class SessionTraces {
  readonly #session: TracedSession;
  #entry: EntrySpans | undefined;
  #opening: Span | undefined;
  /** Span of the last opening, which entries link that waited for it. */
  #opened: SpanContext | undefined;
  #question: { entryId: string; id: string } | undefined;

  constructor(session: TracedSession) {
    this.#session = session;
  }

  /** Begins the spans of an entry that is about to reach the shell. */
  begin(entry: Entry, parent: TraceContext | undefined, waits: readonly WaitInterval[]): void {
    const process = this.#process(entry, parent, waits);
    const run = beginSpan(nameSpan(SPANS.run, entry.kind), { attributes: this.#about(entry) }, process);
    this.#entry = { id: entry.id, process, run, runFrom: Date.now() };
  }

  /** Context of the span of the command that runs. */
  get running(): TraceContext | undefined {
    return this.#entry?.run && contextOf(this.#entry.run);
  }

  /** Ends the run of an entry, and begins to store its Result. `begin` is called first for one that never began. */
  store(entry: Entry, result: WireResult, unbegun: () => [TraceContext | undefined, readonly WaitInterval[]]): void {
    if (this.#entry?.id !== entry.id)
      this.#entry = { id: entry.id, process: this.#process(entry, ...unbegun()), runFrom: 0 };
    const { process, run, runFrom } = this.#entry;
    if (run !== undefined) {
      const firstAt = result.receipt?.firstOutputMs;
      if (firstAt !== undefined) run.addEvent('first output', runFrom + firstAt);
      describe(run, result).end();
    }
    delete this.#entry.run;
    this.#entry.store ??= beginSpan(SPANS.store, { attributes: this.#about(entry) }, process);
  }

  /** Ends the spans of an entry whose Result is stored. `attributes` describe it. */
  end(result: WireResult, attributes: Attributes = {}): void {
    this.#endAll((process) => describe(process.setAttributes(attributes), result));
  }

  /** Ends the spans of an entry that leaves this host, or that is to be attempted again, without a Result. */
  leave(errorType: string): void {
    this.#endAll((process) => fail(process, errorType));
  }

  #endAll(describeEnd: (process: Span) => void): void {
    if (this.#entry === undefined) return;
    const { process, run, store } = this.#entry;
    this.#entry = undefined;
    run?.end();
    store?.end();
    describeEnd(process);
    process.end();
  }

  /** Records the question that a person is asked about an entry. */
  asked(entryId: string, id: string): void {
    this.#question = { entryId, id };
  }

  /** Runs the opening of a shell inside a span, below the entry that needs it. `parent` is that of a waiting entry. */
  open(parent: TraceContext | undefined, describeOpened: () => Attributes, work: () => Promise<boolean>) {
    const attributes = { [ATTRIBUTES.sessionId]: this.#session.session, [ATTRIBUTES.hostId]: this.#session.host };
    return runInSpan(SPANS.open, { attributes }, this.#entry?.process ?? parent, async (span) => {
      this.#opening = span;
      this.#opened = span.spanContext();
      try {
        const isOpen = await work();
        span.setAttributes(describeOpened());
        if (!isOpen) fail(span, 'SESSION_START_FAILED');
        return isOpen;
      } finally {
        this.#opening = undefined;
      }
    });
  }

  /** Runs a step of an opening inside a span. */
  step<T>(name: string, work: () => Promise<T>): Promise<T> {
    const parent = this.#opening ?? this.#entry?.run;
    return runInSpan(name, { attributes: { [ATTRIBUTES.sessionId]: this.#session.session } }, parent, work);
  }

  /** Runs a file operation outside the mailbox inside a span. */
  file<T>(name: string, parent: TraceContext | undefined, work: () => Promise<T>): Promise<T> {
    const attributes = {
      [ATTRIBUTES.sessionId]: this.#session.session,
      [ATTRIBUTES.hostId]: this.#session.host,
      [ATTRIBUTES.fileOperation]: name,
    };
    return runInSpan(nameSpan(SPANS.file, name), { kind: SpanKind.SERVER, attributes }, parent, work);
  }

  /** Starts the span of an entry from its start on, and the spans of the waits before it. */
  #process(entry: Entry, parent: TraceContext | undefined, waits: readonly WaitInterval[]): Span {
    const { toHost, session, host, fence } = this.#session;
    const isStarted = entry.startedAt > 0;
    const startedAt = isStarted ? toHost(entry.startedAt) : Date.now();
    const acceptedAt = Math.min(startedAt, toHost(entry.acceptedAt));
    const attributes = this.#about(entry);
    const wait = beginSpan(SPANS.wait, { startTime: acceptedAt, attributes }, parent);
    for (const one of waits) {
      if (one.wait === 'waiting') continue;
      const links = one.wait === 'opening' ? this.#linksToOpening(wait) : [];
      const isAsked = one.wait === 'approval' && this.#question?.entryId === entry.id;
      const span = beginSpan(
        WAIT_SPANS[one.wait],
        {
          startTime: toHost(one.from),
          links,
          attributes: { ...attributes, ...(isAsked && { [ATTRIBUTES.approvalId]: this.#question?.id }) },
        },
        wait,
      );
      span.end(toHost(one.to));
    }
    wait.end(startedAt);
    return beginSpan(
      SPANS.process,
      {
        kind: SpanKind.CONSUMER,
        startTime: startedAt,
        attributes: {
          ...attributes,
          [ATTRIBUTES.messagingSystem]: 'shellfleet',
          [ATTRIBUTES.messagingOperationName]: 'process',
          [ATTRIBUTES.messagingOperationType]: 'process',
          [ATTRIBUTES.messagingDestination]: 'mailbox',
          [ATTRIBUTES.conversationId]: session,
          [ATTRIBUTES.hostId]: host,
          [ATTRIBUTES.fence]: fence,
        },
      },
      parent,
    );
  }

  /** Returns a link to the last opening, unless that is in the same trace. */
  #linksToOpening(wait: Span): Link[] {
    if (this.#opened === undefined || this.#opened.traceId === wait.spanContext().traceId) return [];
    return [{ context: this.#opened }];
  }

  #about(entry: Pick<Entry, 'id' | 'kind'>): Attributes {
    const { session } = this.#session;
    return {
      [ATTRIBUTES.sessionId]: session,
      [ATTRIBUTES.commandId]: toCommandId(session, entry.id),
      [ATTRIBUTES.entryKind]: entry.kind,
    };
  }
}

/** Outcomes that are no error of a span. */
const NO_ERRORS = ['success', 'cancellation', 'denial'];

/** Describes in a span how its entry ended. */
function describe(span: Span, result: WireResult): Span {
  const { outcome, exitCode } = result;
  span.setAttribute(ATTRIBUTES.outcome, outcome);
  if (exitCode !== null) span.setAttribute(ATTRIBUTES.exitCode, exitCode);
  if (NO_ERRORS.includes(outcome)) return span;
  return fail(span, outcome === 'error' ? result.error.code : outcome);
}

/** Runs a step of an opening, inside a span if this host traces. */
export function traceStep<T>(
  traces: Pick<SessionTraces, 'step'> | undefined,
  name: string,
  work: () => Promise<T>,
): Promise<T> {
  return traces === undefined ? work() : traces.step(name, work);
}
