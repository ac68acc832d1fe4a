import { createReadStream } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import type { CallOrder } from '@shellfleet/concurrency';
import { withResolvers } from '@shellfleet/concurrency';
import { type FileInfo, ShellfleetError } from '@shellfleet/protocol';
import type { OpenSession } from '../submit/open-session.ts';
import type { SubmitContext } from '../submit/send-entry.ts';
import type { Files } from './files.ts';
import { parseSandboxPath, type SentOperation, sendOperation } from './run-operation.ts';

/** Bytes of a file that one entry carries. */
const PART_BYTES = 524_288;
/** Parts of one file that may be in flight at once. */
const PARTS_AHEAD = 4;
/** Limit of `read`, which holds the file in memory; `download` has none. */
const READ_BYTES = 268_435_456;

/** Splits files into parts that fit an entry of the mailbox. A file of several parts is one exclusive call, so no command comes between its parts. */
export class SessionFiles implements Files {
  readonly #context: SubmitContext;
  readonly #session: OpenSession;
  readonly #order: CallOrder;

  constructor(context: SubmitContext, session: OpenSession, order: CallOrder) {
    this.#context = context;
    this.#session = session;
    this.#order = order;
  }

  async read(path: string): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let total = 0;
    for await (const { data, size } of this.#parts(parseSandboxPath(path))) {
      total += data.byteLength;
      // Both: a file may grow while it is read, and a sparse one of a terabyte is refused at its first part.
      if (total > READ_BYTES || size > READ_BYTES) throw tooLarge(path);
      parts.push(data);
    }
    return new Uint8Array(Buffer.concat(parts));
  }

  async readText(path: string): Promise<string> {
    return Buffer.from(await this.read(path)).toString('utf8');
  }

  async write(path: string, data: string | Uint8Array): Promise<void> {
    const parsed = parseSandboxPath(path);
    if (typeof data !== 'string' && !(data instanceof Uint8Array)) {
      throw new ShellfleetError(
        'COMMAND_INVALID',
        `The data for ${JSON.stringify(parsed)} must be a string or bytes.`,
        {
          issues: [{ path: 'data', message: 'must be a string or bytes' }],
        },
      );
    }
    await this.#writeParts(parsed, cut(Buffer.from(data as string)));
  }

  async list(path: string): Promise<FileInfo[]> {
    const operation = { name: 'list', path: parseSandboxPath(path) } as const;
    const sent = await this.#order.run(() => sendOperation(this.#context, this.#session, operation));
    return (await sent.answer()).entries ?? [];
  }

  async remove(path: string): Promise<void> {
    const operation = { name: 'remove', path: parseSandboxPath(path) } as const;
    const sent = await this.#order.run(() => sendOperation(this.#context, this.#session, operation));
    await sent.answer();
  }

  async upload(localPath: string, path: string): Promise<void> {
    const parsed = parseSandboxPath(path);
    await this.#writeParts(parsed, readLocal(localPath));
  }

  async download(path: string, localPath: string): Promise<void> {
    const parsed = parseSandboxPath(path);
    const temporary = `${localPath}.part-${this.#context.nextId()}`;
    const file = await open(temporary, 'wx').catch((error: unknown) => {
      throw localError(localPath, error);
    });
    try {
      try {
        for await (const { data } of this.#parts(parsed)) await file.write(data);
      } finally {
        await file.close();
      }
      await rename(temporary, localPath);
    } catch (error) {
      await rm(temporary, { force: true });
      throw (error as NodeJS.ErrnoException).syscall === undefined ? error : localError(localPath, error);
    }
  }

  /** Yields the file part by part, with its whole size at that time. A part that is not full is the last. */
  async *#parts(path: string): AsyncGenerator<{ data: Uint8Array; size: number }> {
    const release = withResolvers<void>();
    const readAt = (offset: number) =>
      sendOperation(this.#context, this.#session, { name: 'read', path, offset, length: PART_BYTES });
    const first = withResolvers<SentOperation>();
    const holding = this.#order.runExclusive(async () => {
      const sending = readAt(0);
      sending.then(first.resolve, first.reject);
      await sending;
      await release.promise;
    });
    holding.catch(() => {});
    try {
      let sent = await first.promise;
      let firstEpoch: number | undefined;
      for (let offset = 0; ; offset += PART_BYTES) {
        const { data = '', size = 0, epoch } = await sent.answer();
        firstEpoch ??= epoch;
        if (epoch !== firstEpoch) throw sandboxReplaced(path);
        const part = Buffer.from(data, 'base64');
        yield { data: part, size };
        if (part.byteLength < PART_BYTES || offset + PART_BYTES === size) return;
        sent = await readAt(offset + PART_BYTES);
      }
    } finally {
      release.resolve();
    }
  }

  async #writeParts(path: string, parts: Iterable<Part> | AsyncIterable<Part>): Promise<void> {
    const transfer = this.#context.nextId();
    const answers: Promise<unknown>[] = [];
    await this.#order.runExclusive(async () => {
      let offset = 0;
      for await (const { data, last } of parts) {
        const operation = { name: 'write', path, offset, last, transfer, data: data.toString('base64') } as const;
        const answer = (await sendOperation(this.#context, this.#session, operation)).answer();
        answer.catch(() => {});
        answers.push(answer);
        offset += data.byteLength;
        if (answers.length >= PARTS_AHEAD) await answers.shift();
      }
    });
    await Promise.all(answers);
  }
}

interface Part {
  data: Buffer;
  last: boolean;
}

function* cut(data: Buffer): Generator<Part> {
  for (let offset = 0; offset === 0 || offset < data.byteLength; offset += PART_BYTES) {
    const end = offset + PART_BYTES;
    yield { data: data.subarray(offset, end), last: end >= data.byteLength };
  }
}

/** Yields at least one part. A file that grows meanwhile is read to the end that it has then. */
async function* readLocal(localPath: string): AsyncGenerator<Part> {
  try {
    if ((await stat(localPath)).isDirectory())
      throw new ShellfleetError(
        'FILE_IS_DIRECTORY',
        `${localPath} is a directory. Name a file, or pack the directory first (tar).`,
      );
    let held: Buffer | undefined;
    for await (const data of createReadStream(localPath, { highWaterMark: PART_BYTES }) as AsyncIterable<Buffer>) {
      if (held !== undefined) yield { data: held, last: false };
      held = data;
    }
    yield { data: held ?? Buffer.alloc(0), last: true };
  } catch (error) {
    throw (error as NodeJS.ErrnoException).syscall === undefined ? error : localError(localPath, error);
  }
}

function sandboxReplaced(path: string): ShellfleetError {
  return new ShellfleetError(
    'CONTAINER_LOST',
    `The shell was replaced while ${path} was being read, so its parts may be of different files. Read it again.`,
    { path },
  );
}

function tooLarge(path: string): ShellfleetError {
  return new ShellfleetError(
    'FILE_TOO_LARGE',
    `${path} is larger than ${READ_BYTES} bytes, the most that is read into memory. Use files.download.`,
    { path, limit: READ_BYTES },
  );
}

function localError(localPath: string, cause: unknown): ShellfleetError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const codes: Record<string, ErrorCodeOfFiles> = {
    ENOENT: 'FILE_NOT_FOUND',
    EISDIR: 'FILE_IS_DIRECTORY',
    EACCES: 'FILE_DENIED',
    EPERM: 'FILE_DENIED',
  };
  return new ShellfleetError(
    codes[code ?? ''] ?? 'FILE_DENIED',
    `${localPath} on this machine: ${message}.`,
    { path: localPath },
    { cause },
  );
}

type ErrorCodeOfFiles = 'FILE_NOT_FOUND' | 'FILE_IS_DIRECTORY' | 'FILE_DENIED';
