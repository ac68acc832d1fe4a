import { setTimeout as delay } from 'node:timers/promises';
import { abortable, type CallOrder } from '@shellfleet/concurrency';
import { readStoredSession } from '@shellfleet/mailbox';
import {
  type FileOperation,
  type HostReply,
  isShellfleetError,
  onlyReads,
  parseKeyspace,
  ShellfleetError,
  toCommandId,
} from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import pLimit from 'p-limit';
import { type RequestContext, requestFromHost } from '../hosts/request-from-host.ts';
import { carryActive } from '../spans.ts';
import type { OpenSession } from '../submit/open-session.ts';
import type { SubmitContext } from '../submit/send-entry.ts';
import type { DescribeStep, DoneStep, FileSteps, SentStep } from './file-steps.ts';
import type { FileOptions } from './files.ts';
import { sendOperation } from './run-operation.ts';
import { type WaitContext, waitForAnswer } from './wait-for-answer.ts';

// File steps that are requests to the session's host, outside the mailbox.
// BESIDE-1. All requests of a step have one id, so the host does it at most once in one sandbox.
// BESIDE-2. A session without a shell gets one by a mailbox entry, unless an entry runs or waits already.
// BESIDE-3. One step at a time asks a person. Other steps that need an answer wait meanwhile, so an answer for a
//     directory answers all of them.

/** Most steps that are requested at once. */
const AT_ONCE = 4;
/** Wait for the reply to a request. After it the request is sent again, under the same id. */
const REPLY_WITHIN_MS = 3_000;
const POLL_MS = { least: 25, most: 500 };
/** Most requests of one step while the host replies that it does not know whether the step was done. */
const MOST_UNKNOWN = 25;

export type BesideContext = SubmitContext & RequestContext & WaitContext;

type StepOptions = Pick<FileOptions, 'signal' | 'onApproval'>;

interface Step extends StepOptions {
  operation: FileOperation;
  describe: DescribeStep | undefined;
  /** True if a person may be asked about the step now. */
  asks: boolean;
}

export class StepsBeside implements FileSteps {
  readonly ahead = 1;
  readonly #context: BesideContext;
  readonly #session: OpenSession;
  readonly #order: CallOrder;
  readonly #limit = pLimit(AT_ONCE);
  /** Lets one step at a time ask a person (BESIDE-3). */
  readonly #asking = pLimit(1);
  /** Host that replied last. */
  #host = '';
  #opening: Promise<unknown> | undefined;

  constructor(context: BesideContext, session: OpenSession, order: CallOrder) {
    this.#context = context;
    this.#session = session;
    this.#order = order;
  }

  of(options: StepOptions): FileSteps {
    return { ahead: this.ahead, send: (operation, describe) => this.send(operation, describe, options) };
  }

  async send(operation: FileOperation, describe?: DescribeStep, options: StepOptions = {}): Promise<SentStep> {
    const { interceptors, tenant } = this.#context;
    const { signal, onApproval } = options;
    const step = { describe, signal, onApproval, asks: false };
    if (interceptors.isEmpty) return this.#begin({ ...step, operation });
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
      const begun = this.#begin({ ...step, operation: payload.type === 'file' ? payload.operation : operation });
      return { pending: { commandId }, deduplicated: false, begun };
    });
    return sent.begun;
  }

  #begin(step: Step): SentStep {
    const done = this.#do(step);
    done.catch(() => {});
    return { reply: () => done };
  }

  async #do(step: Step): Promise<DoneStep> {
    const { operation, asks, signal } = step;
    let id = this.#context.nextId();
    let unknown = 0;
    for (let pauseMs = POLL_MS.least; ; pauseMs = Math.min(2 * pauseMs, POLL_MS.most)) {
      const reply = await this.#limit(() => this.#ask(id, operation, asks));
      if (reply.state === 'done') return { ...reply.reply, epoch: reply.epoch };
      if (reply.state === 'would-ask') return this.#doAsking(step);
      if (reply.state === 'asks') {
        step.onApproval?.(reply.question);
        const { session, generation } = { session: this.#session.id, generation: this.#session.generation };
        await waitForAnswer(this.#context, { session, generation, entryId: reply.asker }, signal);
        continue;
      }
      if (reply.state === 'no-shell') {
        // The session may wait for a slot for hours, in which the step has not begun.
        await abortable(this.#untilShell(pauseMs), signal);
        continue;
      }
      unknown += 1;
      if (unknown > MOST_UNKNOWN) throw notKnown(operation);
      if (onlyReads(operation)) id = this.#context.nextId();
      await delay(pauseMs);
    }
  }

  /** Does a step that needs a person's answer, one such step at a time (BESIDE-3). */
  #doAsking(step: Step): Promise<DoneStep> {
    const { operation, describe, asks } = step;
    if (asks) throw cannotBeShown(operation);
    const asking = this.#asking(async () => {
      step.signal?.throwIfAborted();
      return this.#do({ ...step, asks: true, operation: describe === undefined ? operation : await describe() });
    });
    return abortable(asking, step.signal);
  }

  async #ask(id: string, operation: FileOperation, asks: boolean): Promise<HostReply<'file'>> {
    const { keys, generation } = this.#session;
    this.#host ||= (await readStoredSession(this.#context.redis, keys))?.host ?? '';
    if (this.#host === '') return { state: 'no-shell' };
    const { sealer, caller } = this.#context;
    const signed = sealer.signs ? { spec: this.#session.spec } : {};
    const place = sealPlace('file', keys, { operation: id, generation, ...signed });
    const sealed = sealer.seal(JSON.stringify({ ...operation, submittedBy: caller }), place);
    const trace = carryActive();
    const request = { type: 'file', generation, operation: id, sealed, ...(asks && { asks }), trace } as const;
    try {
      return await requestFromHost(this.#context, this.#host, keys, request, { timeoutMs: REPLY_WITHIN_MS });
    } catch (error) {
      if (!isShellfleetError(error) || (error.code !== 'LEASE_LOST' && error.code !== 'HOST_UNREACHABLE')) throw error;
      this.#host = '';
      return { state: 'no-shell' };
    }
  }

  /** Waits until the session has a shell (BESIDE-2). */
  async #untilShell(pauseMs: number): Promise<void> {
    const { keys, generation } = this.#session;
    this.#host = '';
    const state = await readStoredSession(this.#context.redis, keys);
    const isOpen = state?.phase === 'open' && state.generation === generation;
    if (isOpen && (state.running !== '' || state.waiting > 0)) return delay(pauseMs);
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  /**
   * Submits an entry that gives the session a shell. Rejects with SESSION_CLOSED, or the error of a sandbox that cannot
   * be opened.
   */
  async #open(): Promise<void> {
    const opened = await this.#order.run(() =>
      sendOperation(this.#context, this.#session, { name: 'stat', path: '/' }),
    );
    await opened.reply();
  }
}

function cannotBeShown({ name, path }: FileOperation): ShellfleetError {
  return new ShellfleetError(
    'FILE_DENIED',
    `The ${name} of ${path} needs an approval, and what it writes cannot be shown before it is there: it is a stream, or changed meanwhile. Write bytes or upload a file, or have a rule allow files.${name} in its directory.`,
    { path, operation: name },
  );
}

function notKnown({ name, path }: FileOperation): ShellfleetError {
  return new ShellfleetError(
    'CONTAINER_LOST',
    `The connection to the sandbox broke during the ${name} of ${path}. Whether it was done is not known.`,
    { path },
  );
}
