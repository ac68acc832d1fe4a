import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Caller,
  type ContentDigest,
  ensureShellfleetError,
  type FileOperation,
  type FileRequest,
  fileOperationSchema,
  fromWireError,
  type HostReply,
  isShellfleetError,
  parseOrThrow,
  ShellfleetError,
  submittedSchema,
  type TraceContext,
} from '@shellfleet/protocol';
import { type Signature, sealPlace } from '@shellfleet/sealing';
import pLimit from 'p-limit';
import { ulid } from 'ulid';
import type { KeeperFileOperation } from '../shell/keeper-operation.ts';
import type { FileCallEnd } from '../shell/shell-files.ts';
import { fileTimeoutMs, replyOf, toFileError, toKeeperOperation } from './keeper-file.ts';
import { noteFileCall, noteFileEnd } from './note-audit.ts';
import type { SessionContext } from './session-context.ts';

// File operations of one session outside of the mailbox.
// FILES-1. An operation that changes something is done at most once in one sandbox, however often it is requested: its
//          id is known here while it runs, and by the keeper afterwards.
// FILES-2. At most AT_ONCE operations run at a time, and MOST_WAITING wait. Further ones are refused before they are
//          opened.
// FILES-3. Nothing is given to the keeper while the lease may have run out.

const AT_ONCE = 4;
const MOST_WAITING = 64;
const BUSY_POLL_MS = 50;
const READ_BYTES = 524_288;
const READ_TIMEOUT_MS = 60_000;

type Reply = HostReply<'file'>;

export interface FileToAdmit {
  id: string;
  operation: FileOperation;
  signature: Signature | undefined;
  submittedBy: Caller | undefined;
  /** Whether a person may be asked now. */
  asks: boolean;
}

/** A person must be asked, or was asked. */
export type Asks = { state: 'would-ask' } | Extract<Reply, { state: 'asks' }>;

/** Lets an admitted operation begin. Throws when it is denied. */
type Admit = <T>(file: FileToAdmit, begin: () => { begun: T }) => Promise<{ begun: T } | { asks: Asks }>;

export interface FileCallsDeps {
  context: SessionContext;
  isHeld(): boolean;
  admit: Admit;
}

export class FileCalls {
  readonly #deps: FileCallsDeps;
  readonly #underWay = new Map<string, Promise<Reply>>();
  readonly #limit = pLimit(AT_ONCE);
  #usedAt = 0;

  constructor(deps: FileCallsDeps) {
    this.#deps = deps;
  }

  /** Time of the last use of the session's files, by `performance.now()`. */
  get usedAt(): number {
    return this.#underWay.size > 0 ? performance.now() : this.#usedAt;
  }

  /** Performs the requested operation. Throws its error, or QUOTA_EXCEEDED. */
  reply({ operation: id, sealed, asks = false, trace }: FileRequest): Promise<Reply> {
    const asked = this.#underWay.get(id);
    if (asked !== undefined) return asked;
    const { keys } = this.#deps.context.owner;
    if (this.#underWay.size >= AT_ONCE + MOST_WAITING) return Promise.reject(tooMany(keys.session));
    const reply = this.#limit(() => this.#do(id, sealed, asks, trace))
      .catch((error: unknown) => this.#throwRedacted(error))
      .finally(() => {
        this.#underWay.delete(id);
        this.#usedAt = performance.now();
      });
    this.#underWay.set(id, reply);
    return reply;
  }

  /** Throws an error redacted, as a path may hold a secret. A refused signature is recorded in the audit first. */
  async #throwRedacted(error: unknown): Promise<never> {
    const { audit, owner } = this.#deps.context;
    if (isShellfleetError(error) && error.code === 'UNAUTHORIZED') await audit.recorded(owner.keys.tenant);
    throw fromWireError(this.#deps.context.redaction.value(ensureShellfleetError(error).toJSON()));
  }

  async #do(id: string, sealed: string, asks: boolean, trace: TraceContext | undefined): Promise<Reply> {
    const { context } = this.#deps;
    const { generation, spec, traces } = context;
    const place = sealPlace('file', context.owner.keys, { operation: id, generation, spec });
    const { plain, signature } = context.sealer.openSigned(sealed, place);
    const [stored, name] = [JSON.parse(plain), `The file operation ${id}`];
    const operation = parseOrThrow(fileOperationSchema, stored, 'INTERNAL', name);
    const { submittedBy } = parseOrThrow(submittedSchema, stored, 'INTERNAL', name);
    noteFileCall(id, operation, { submittedBy, producer: signature?.signer }, context);
    const startedAt = performance.now();
    const work = () => this.#doAdmitted({ id, operation, signature, submittedBy, asks });
    const done = traces === undefined ? work() : traces.file(operation.name, trace, work);
    return done.then(
      (reply) => {
        if (reply.state !== 'would-ask' && reply.state !== 'asks') noteFileEnd(id, undefined, startedAt, context);
        return reply;
      },
      (error: unknown) => {
        noteFileEnd(id, ensureShellfleetError(error), startedAt, context);
        throw error;
      },
    );
  }

  async #doAdmitted(file: FileToAdmit): Promise<Reply> {
    const { id, operation } = file;
    await this.#checkWhole(operation);
    for (;;) {
      const admitted = await this.#deps.admit(file, () => ({ begun: { end: this.#call(id, operation) } }));
      if ('asks' in admitted) return admitted.asks;
      const end = await admitted.begun.end;
      if (end?.type !== 'busy') return this.#toAnswer(operation, end);
      await delay(BUSY_POLL_MS);
    }
  }

  /** Throws unless all parts together have the size and digest that a person was shown. Called before the last part. */
  async #checkWhole(operation: FileOperation): Promise<void> {
    if (operation.name !== 'write' || !operation.last || operation.whole === undefined) return;
    const hash = createHash('sha256');
    const exact = this.#deps.context.takesRealPaths(operation);
    const { path } = toKeeperOperation(operation, exact);
    for (let offset = 0; offset < operation.offset; ) {
      const length = Math.min(READ_BYTES, operation.offset - offset);
      const end = await this.#readPart({ type: 'read', path, offset, length, exact });
      if (end?.type !== 'done' || end.stdout.byteLength === 0)
        throw toFileError(operation, 'parts-missing', Buffer.alloc(0));
      hash.update(end.stdout);
      offset += end.stdout.byteLength;
    }
    const data = Buffer.from(operation.data, 'base64');
    const whole = { bytes: operation.offset + data.byteLength, sha256: hash.update(data).digest('hex') };
    if (whole.bytes === operation.whole.bytes && whole.sha256 === operation.whole.sha256) return;
    throw otherBytes(operation.path, whole, operation.whole);
  }

  async #readPart(read: KeeperFileOperation): Promise<FileCallEnd | undefined> {
    for (;;) {
      const end = await this.#callKeeper(ulid(), read, READ_TIMEOUT_MS);
      if (end?.type !== 'busy') return end;
      await delay(BUSY_POLL_MS);
    }
  }

  #call(id: string, operation: FileOperation): Promise<FileCallEnd> | undefined {
    const exact = this.#deps.context.takesRealPaths(operation);
    return this.#callKeeper(id, toKeeperOperation(operation, exact), fileTimeoutMs(operation));
  }

  /** Starts the operation in the keeper. Returns undefined when there is no shell, so nothing has begun. */
  #callKeeper(id: string, operation: KeeperFileOperation, timeoutMs: number): Promise<FileCallEnd> | undefined {
    const { context, isHeld } = this.#deps;
    const { shell } = context;
    if (!shell.ready || shell.live === undefined || !isHeld() || context.signal.aborted) return undefined;
    return shell.live.files.call(id, operation, timeoutMs);
  }

  #toAnswer(operation: FileOperation, end: FileCallEnd | undefined): Reply {
    if (end === undefined) return { state: 'no-shell' };
    const reply = replyOf(operation, end);
    return reply === undefined ? { state: 'unknown' } : { state: 'done', epoch: this.#deps.context.shell.epoch, reply };
  }
}

function tooMany(session: string): ShellfleetError {
  return new ShellfleetError(
    'QUOTA_EXCEEDED',
    `Session ${session} has ${MOST_WAITING} file operations that wait, and that is the limit. Wait for some of them.`,
    { sessionId: session, limit: MOST_WAITING },
  );
}

function otherBytes(path: string, found: ContentDigest, shown: ContentDigest): ShellfleetError {
  const text = ({ bytes, sha256 }: ContentDigest) => `${bytes} bytes with the SHA-256 ${sha256}`;
  return new ShellfleetError(
    'FILE_DENIED',
    `${path} was not written: its parts are ${text(found)}, and what a person was asked about is ${text(shown)}. Write it again.`,
    { path },
  );
}
