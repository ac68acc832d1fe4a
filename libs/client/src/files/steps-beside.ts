import { setTimeout as delay } from 'node:timers/promises';
import type { CallOrder } from '@shellfleet/concurrency';
import { readSessionState, sealPlace } from '@shellfleet/mailbox';
import {
  type FileOperation,
  type HostAnswer,
  isShellfleetError,
  parseKeyspace,
  ShellfleetError,
  toCommandId,
} from '@shellfleet/protocol';
import pLimit from 'p-limit';
import { type AskContext, askHost } from '../hosts/ask-host.ts';
import type { OpenSession } from '../submit/open-session.ts';
import type { SubmitContext } from '../submit/send-entry.ts';
import type { DoneStep, FileSteps, SentStep } from './file-steps.ts';
import { changesNothing, sendOperation } from './run-operation.ts';

// Steps beside the mailbox: questions to the host that owns the session.
//
// BESIDE-1. A step that changes something has one id in all questions about it, by which the host does it at most once in one sandbox.
// BESIDE-2. A session without a shell gets one by an entry of its mailbox. Where one runs or waits already, the step waits for that.

/** The host does as many at once. */
const AT_ONCE = 4;
/** Then it is asked for again, under the same id. */
const ANSWER_WITHIN_MS = 3_000;
const POLL_MS = { least: 25, most: 500 };
/** Tries for a step of which the host cannot say whether it was done. */
const MOST_UNKNOWN = 25;

export type BesideContext = SubmitContext & AskContext;

export class StepsBeside implements FileSteps {
  readonly ahead = 1;
  readonly #context: BesideContext;
  readonly #session: OpenSession;
  readonly #order: CallOrder;
  readonly #limit = pLimit(AT_ONCE);
  /** The host that gave the last answer. */
  #host = '';
  #opening: Promise<unknown> | undefined;

  constructor(context: BesideContext, session: OpenSession, order: CallOrder) {
    this.#context = context;
    this.#session = session;
    this.#order = order;
  }

  async send(operation: FileOperation): Promise<SentStep> {
    const { interceptors, tenant } = this.#context;
    if (interceptors.isEmpty) return this.#begin(operation);
    const commandId = toCommandId(this.#session.id, this.#context.nextId());
    const input = {
      namespace: parseKeyspace(this.#context.namespace).namespace,
      tenant,
      sessionId: this.#session.id,
      commandId,
      durable: false,
      retry: 'never' as const,
    };
    const sent = await interceptors.around({ ...input, payload: { type: 'file', operation } }, async (payload) => {
      const begun = this.#begin(payload.type === 'file' ? payload.operation : operation);
      return { pending: { commandId }, deduplicated: false, begun };
    });
    return sent.begun;
  }

  #begin(operation: FileOperation): SentStep {
    const done = this.#limit(() => this.#do(operation));
    done.catch(() => {});
    return { answer: () => done };
  }

  async #do(operation: FileOperation): Promise<DoneStep> {
    let id = this.#context.nextId();
    let unknown = 0;
    for (let pauseMs = POLL_MS.least; ; pauseMs = Math.min(2 * pauseMs, POLL_MS.most)) {
      const answer = await this.#ask(id, operation);
      if (answer.state === 'done') return { ...answer.answer, epoch: answer.epoch };
      if (answer.state === 'no-shell') {
        await this.#untilShell(pauseMs);
        continue;
      }
      unknown += 1;
      if (unknown > MOST_UNKNOWN) throw notKnown(operation);
      if (changesNothing(operation)) id = this.#context.nextId();
      await delay(pauseMs);
    }
  }

  async #ask(id: string, operation: FileOperation): Promise<HostAnswer<'file'>> {
    const { keys, generation } = this.#session;
    this.#host ||= (await readSessionState(this.#context.redis, keys))?.host ?? '';
    if (this.#host === '') return { state: 'no-shell' };
    const { sealer } = this.#context;
    const signed = sealer.signs ? { spec: this.#session.spec } : {};
    const place = sealPlace('file', keys, { operation: id, generation, ...signed });
    const sealed = sealer.seal(JSON.stringify(operation), place);
    const question = { type: 'file', generation, operation: id, sealed } as const;
    try {
      return await askHost(this.#context, this.#host, keys, question, { timeoutMs: ANSWER_WITHIN_MS });
    } catch (error) {
      if (!isShellfleetError(error) || (error.code !== 'LEASE_LOST' && error.code !== 'HOST_UNREACHABLE')) throw error;
      this.#host = '';
      return { state: 'no-shell' };
    }
  }

  /** BESIDE-2 */
  async #untilShell(pauseMs: number): Promise<void> {
    const { keys, generation } = this.#session;
    this.#host = '';
    const state = await readSessionState(this.#context.redis, keys);
    const isOpen = state?.life === 'open' && state.generation === generation;
    if (isOpen && (state.running !== '' || state.waiting > 0)) return delay(pauseMs);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  /** Rejects with SESSION_CLOSED, and when no sandbox can be opened. */
  async #open(): Promise<void> {
    const opened = await this.#order.run(() =>
      sendOperation(this.#context, this.#session, { name: 'stat', path: '/' }),
    );
    await opened.answer();
  }
}

function notKnown({ name, path }: FileOperation): ShellfleetError {
  return new ShellfleetError(
    'CONTAINER_LOST',
    `The connection to the sandbox broke during the ${name} of ${path}. Whether it was done is not known.`,
    { path },
  );
}
