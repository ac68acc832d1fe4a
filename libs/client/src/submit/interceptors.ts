import { type EntryPayload, entryPayloadSchema, parseOrThrow, ShellfleetError } from '@shellfleet/protocol';

/** A submit as an interceptor receives it. */
export interface SubmitInput {
  /** The fleet's name in Redis. */
  readonly namespace: string;
  /** Tenant of the session. */
  readonly tenant: string;
  /** Session of the submit. */
  readonly sessionId: string;
  /** Id of the new command, unless its idempotency key finds an earlier one. */
  readonly commandId: string;
  /** The command with every default filled in, a step of a file operation, or a restart. */
  readonly payload: Readonly<EntryPayload>;
  /** `idempotencyKey` of RunOptions. */
  readonly idempotencyKey?: string;
  /** `startDeadlineMs` of RunOptions. */
  readonly startDeadlineMs?: number;
  /** `durable` of RunOptions. */
  readonly durable: boolean;
  /** `retry` of RunOptions. */
  readonly retry: 'never' | 'idempotent';
}

/** The mailbox's reply to an accepted submit. */
export interface SubmitReply {
  /** Id of the accepted command; with `deduplicated`, of the earlier one. */
  commandId: string;
  /** Whether the idempotency key found an earlier command. */
  deduplicated: boolean;
}

/**
 * Runs around every submit: commands, steps of file operations, restarts.
 *
 * `next(input)` runs the next interceptor, and finally sends the entry; it resolves when Redis has accepted it. Call it
 * once. An interceptor may pass on another `payload` of the same type, which is validated again; other fields are
 * read-only. Throw to refuse the submit.
 *
 * Interceptors of different submits may run at the same time, but a session's entries are accepted in the order of the
 * calls. So an interceptor must not wait for its own submit to the same session.
 *
 * ```ts
 * const requireTicket: SubmitInterceptor = async (input, next) => {
 *   if (!(await tickets.allow(input.tenant))) throw new Error(`Tenant ${input.tenant} has no ticket.`);
 *   return next(input);
 * };
 * const fleet = await Fleet.connect({ interceptors: [requireTicket] });
 * ```
 */
export type SubmitInterceptor = (
  input: SubmitInput,
  next: (input: SubmitInput) => Promise<SubmitReply>,
) => Promise<SubmitReply>;

/** An entry, or a file operation outside the mailbox, that was sent. */
interface Sendable {
  pending: { commandId: string };
  deduplicated: boolean;
}

/** Sends an entry before it returns. The promise settles when Redis has replied. */
type Send<Sent extends Sendable> = (payload: EntryPayload) => Promise<Sent>;

/** Runs the interceptors of a view around its submits. */
export class Interceptors {
  readonly #interceptors: readonly SubmitInterceptor[];
  /** Per session, a promise that settles when every submit so far was sent or refused. */
  readonly #sent = new Map<string, Promise<unknown>>();

  constructor(interceptors: readonly SubmitInterceptor[]) {
    this.#interceptors = interceptors;
  }

  get isEmpty(): boolean {
    return this.#interceptors.length === 0;
  }

  /** Runs the interceptors. Rejects with INTERCEPTOR_FAILED when an interceptor throws or does not call next. */
  async around<Sent extends Sendable>(input: SubmitInput, send: Send<Sent>): Promise<Sent> {
    const before = this.#sent.get(input.sessionId);
    const own = Promise.withResolvers<void>();
    const sent = Promise.all([before, own.promise]).then(() => {});
    this.#sent.set(input.sessionId, sent);
    const sending = new SendOnce(input, async (payload) => {
      await before;
      try {
        return send(payload);
      } finally {
        own.resolve();
      }
    });
    try {
      return await sending.run(this.#interceptors);
    } finally {
      own.resolve();
      if (this.#sent.get(input.sessionId) === sent) this.#sent.delete(input.sessionId);
    }
  }
}

/** Sends the entry of one submit at most once, whatever the interceptors do. */
class SendOnce<Sent extends Sendable> {
  readonly #input: SubmitInput;
  readonly #send: Send<Sent>;
  #sending?: Promise<Sent>;

  constructor(input: SubmitInput, send: Send<Sent>) {
    this.#input = input;
    this.#send = send;
  }

  async run(interceptors: readonly SubmitInterceptor[]): Promise<Sent> {
    const chain = interceptors.reduceRight<(input: SubmitInput) => Promise<SubmitReply>>(
      (next, interceptor) => async (input) => interceptor(input, next),
      async (input) => toReply(await this.#sendOnce(input)),
    );
    let thrown: { error: unknown } | undefined;
    await chain(this.#input).catch((error: unknown) => {
      thrown = { error };
    });
    // The interceptor may have thrown while the entry was being sent.
    const end = await this.#sending?.then(
      (accepted) => ({ accepted }),
      (refused: unknown) => ({ refused }),
    );
    if (thrown !== undefined && (end === undefined || 'accepted' in end || end.refused !== thrown.error))
      throw this.#failure(thrown.error, end !== undefined && 'accepted' in end);
    if (end === undefined) throw this.#failure(new Error('It returned without calling next.'), false);
    if ('refused' in end) throw end.refused;
    return end.accepted;
  }

  async #sendOnce({ payload }: SubmitInput): Promise<Sent> {
    if (this.#sending !== undefined) throw new Error('An interceptor called next a second time.');
    this.#sending = this.#send(this.#validated(payload));
    this.#sending.catch(() => {});
    return this.#sending;
  }

  #validated(payload: EntryPayload): EntryPayload {
    const given = this.#input.payload;
    if (payload === given) return given;
    const parsed = parseOrThrow(entryPayloadSchema, payload, 'COMMAND_INVALID', 'The payload from an interceptor');
    if (parsed.type === given.type) return parsed;
    throw new TypeError(
      `An interceptor must not turn a payload of type ${given.type} into one of type ${parsed.type}.`,
    );
  }

  #failure(cause: unknown, accepted: boolean): ShellfleetError {
    const { commandId, sessionId } = this.#input;
    const reason = cause instanceof Error ? cause.message : String(cause);
    const state = accepted
      ? `after it was accepted, so it runs: fleet.command('${commandId}') finds it`
      : 'so it was not accepted';
    return new ShellfleetError(
      'INTERCEPTOR_FAILED',
      `An interceptor failed on the submit of ${commandId}, ${state}. Its error: ${reason}`,
      { commandId, sessionId, accepted },
      { cause },
    );
  }
}

function toReply({ pending, deduplicated }: Sendable): SubmitReply {
  return { commandId: pending.commandId, deduplicated };
}
