import { setTimeout as delay } from 'node:timers/promises';
import { type Signature, sealPlace } from '@shellfleet/mailbox';
import {
  ensureShellfleetError,
  type FileOperation,
  type FileQuestion,
  fileOperationSchema,
  fromWireError,
  type HostAnswer,
  isShellfleetError,
  parseOrThrow,
  ShellfleetError,
} from '@shellfleet/protocol';
import pLimit from 'p-limit';
import type { SessionShell } from '../shell/session-shell.ts';
import type { FileCallEnd } from '../shell/shell-files.ts';
import { fileTimeoutMs, onlyReads, toFileAnswer, toFileError, toKeeperOperation } from './keeper-file.ts';
import { noteFileCall, noteFileEnd } from './note-audit.ts';
import type { SessionContext } from './session-context.ts';

// The file operations of one session beside the entries of its mailbox.
//
// FILES-1. An operation that changes something is done at most once in one sandbox, however often it is asked for: its id is known here while
//          it is under way, and by the keeper afterwards.
// FILES-2. At most AT_ONCE operations run at a time, and MOST_WAITING wait; more are refused before they are opened.
// FILES-3. Nothing is given to the keeper while the lease may have run out.

const AT_ONCE = 4;
const MOST_WAITING = 64;
const BUSY_POLL_MS = 50;

type Answer = HostAnswer<'file'>;

/** Throws when the host's rules do not admit the operation. */
type Admit = (operationId: string, operation: FileOperation, signature: Signature | undefined) => Promise<void>;

export interface FileCallsDeps {
  context: SessionContext;
  shell: SessionShell;
  isHeld(): boolean;
  admit: Admit;
}

export class FileCalls {
  readonly #deps: FileCallsDeps;
  readonly #underWay = new Map<string, Promise<Answer>>();
  readonly #limit = pLimit(AT_ONCE);
  #usedAt = 0;

  constructor(deps: FileCallsDeps) {
    this.#deps = deps;
  }

  /** When the session's files were last used, by `performance.now()`. */
  get usedAt(): number {
    return this.#underWay.size > 0 ? performance.now() : this.#usedAt;
  }

  /** Throws what the operation fails with, and QUOTA_EXCEEDED. */
  answer({ operation: id, sealed }: FileQuestion): Promise<Answer> {
    const asked = this.#underWay.get(id);
    if (asked !== undefined) return asked;
    const { keys } = this.#deps.context.owner;
    if (this.#underWay.size >= AT_ONCE + MOST_WAITING) return Promise.reject(tooMany(keys.session));
    const answer = this.#limit(() => this.#do(id, sealed))
      .catch((error: unknown) => this.#throwRedacted(error))
      .finally(() => {
        this.#underWay.delete(id);
        this.#usedAt = performance.now();
      });
    this.#underWay.set(id, answer);
    return answer;
  }

  /** A path may hold a secret of the session. What is refused for its signature is in the audit first. */
  async #throwRedacted(error: unknown): Promise<never> {
    const { audit, owner } = this.#deps.context;
    if (isShellfleetError(error) && error.code === 'UNAUTHORIZED') await audit.recorded(owner.keys.tenant);
    throw fromWireError(this.#deps.context.redaction.value(ensureShellfleetError(error).toJSON()));
  }

  async #do(id: string, sealed: string): Promise<Answer> {
    const { context, admit } = this.#deps;
    const { generation, spec } = context;
    const place = sealPlace('file', context.owner.keys, { operation: id, generation, spec });
    const { plain, signature } = context.sealer.openSigned(sealed, place);
    const operation = parseOrThrow(fileOperationSchema, JSON.parse(plain), 'INTERNAL', `The file operation ${id}`);
    noteFileCall(id, operation, signature, context);
    const startedAt = performance.now();
    return this.#doAdmitted(id, operation, () => admit(id, operation, signature)).then(
      (answer) => {
        noteFileEnd(id, undefined, startedAt, context);
        return answer;
      },
      (error: unknown) => {
        noteFileEnd(id, ensureShellfleetError(error), startedAt, context);
        throw error;
      },
    );
  }

  async #doAdmitted(id: string, operation: FileOperation, admit: () => Promise<void>): Promise<Answer> {
    await admit();
    for (;;) {
      const end = await this.#call(id, operation);
      if (end?.type !== 'busy') return this.#toAnswer(operation, end);
      await delay(BUSY_POLL_MS);
    }
  }

  /** Undefined when there is no shell, so it was not begun. */
  #call(id: string, operation: FileOperation): Promise<FileCallEnd> | undefined {
    const { shell, context, isHeld } = this.#deps;
    if (!shell.ready || shell.live === undefined || !isHeld() || context.signal.aborted) return undefined;
    return shell.live.files.call(id, toKeeperOperation(operation), fileTimeoutMs(operation));
  }

  #toAnswer(operation: FileOperation, end: FileCallEnd | undefined): Answer {
    const { epoch } = this.#deps.shell;
    switch (end?.type) {
      case undefined:
        return { state: 'no-shell' };
      case 'done':
        return { state: 'done', epoch, answer: toFileAnswer(operation, end.stdout, end.stderr) };
      case 'failed':
        throw toFileError(operation, end.failure, end.stderr);
      case 'done-before':
        if (end.failure !== undefined) throw toFileError(operation, end.failure, Buffer.alloc(0));
        return onlyReads(operation) ? { state: 'unknown' } : { state: 'done', epoch, answer: {} };
      case 'killed':
        if (onlyReads(operation)) return { state: 'unknown' };
        throw killed(operation);
      case 'gone':
        return { state: 'unknown' };
      case 'busy':
      case 'invalid':
        throw new ShellfleetError('INTERNAL', `The keeper refused the ${operation.name} of ${operation.path}.`);
    }
  }
}

function tooMany(session: string): ShellfleetError {
  return new ShellfleetError(
    'QUOTA_EXCEEDED',
    `Session ${session} has ${MOST_WAITING} file operations that wait, and that is the limit. Wait for some of them.`,
    { sessionId: session, limit: MOST_WAITING },
  );
}

function killed({ path, name }: FileOperation): ShellfleetError {
  return new ShellfleetError(
    'CONTAINER_LOST',
    `The ${name} of ${path} was stopped by a restart of the shell, or by a signal. Whether it was done is not known.`,
    { path },
  );
}
