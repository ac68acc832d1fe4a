import { stat } from 'node:fs/promises';
import { SpanKind } from '@opentelemetry/api';
import type { CallOrder } from '@shellfleet/concurrency';
import {
  ATTRIBUTES,
  type FileInfo,
  type FileOperation,
  type FileRecord,
  isShellfleetError,
  nameSpan,
  parseOrThrow,
  ShellfleetError,
  SPANS,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { inSpan } from '../spans.ts';
import type { OpenSession } from '../submit/open-session.ts';
import { downloadDirectory } from './download-directory.ts';
import {
  cut,
  digestOf,
  PART_BYTES,
  type Part,
  type ReadPart,
  readParts,
  type SentFile,
  sendParts,
  toParts,
} from './file-parts.ts';
import { type DoneStep, doStep, type FileSteps, parseSandboxPath } from './file-steps.ts';
import type {
  FileOptions,
  Files,
  ListOptions,
  OpenedFile,
  RemoveOptions,
  StreamOptions,
  TransferOptions,
} from './files.ts';
import { parseGlob } from './glob.ts';
import { toLocalError } from './local-error.ts';
import { openLocalFile, PERMISSIONS, readLocalFile } from './local-file.ts';
import { Progress } from './progress.ts';
import { readTar } from './read-tar.ts';
import { orderedSteps } from './run-operation.ts';
import { type BesideContext, StepsBeside } from './steps-beside.ts';
import { uploadDirectory } from './upload-directory.ts';
import { walk } from './walk.ts';
import { writeTar } from './write-tar.ts';

/** Limit of `read`, which holds the whole file in memory. `download` has no limit. */
const READ_BYTES = 268_435_456;

const CLIENT = { kind: SpanKind.CLIENT } as const;

const bytes = z.int('must be a whole number of bytes').min(0, 'must not be negative');
const rangeSchema = z.object({ offset: bytes, length: bytes });

const modeSchema = z.object({ mode: z.number().int().min(0).max(0o7777) });

/**
 * Splits operations on files and directories into steps. An ordered operation is one exclusive call, so no command runs
 * between its steps.
 */
export class SessionFiles implements Files {
  readonly #order: CallOrder;
  readonly #nextId: () => string;
  readonly #beside: StepsBeside;
  readonly #ordered: FileSteps;
  readonly #sessionId: string;

  constructor(context: BesideContext, session: OpenSession, order: CallOrder) {
    this.#order = order;
    this.#sessionId = session.id;
    this.#nextId = () => context.nextId();
    this.#beside = new StepsBeside(context, session, order);
    this.#ordered = orderedSteps(context, session);
  }

  async read(path: string, options: FileOptions = {}): Promise<Uint8Array> {
    const parsed = parseSandboxPath(path);
    return this.#inPlace('read', options, async (steps) => {
      const parts: Uint8Array[] = [];
      let total = 0;
      for await (const { data, size } of readParts(steps, parsed, { signal: options.signal })) {
        total += data.byteLength;
        // Both sizes are checked: a file may grow while it is read, and a sparse terabyte is refused at its first part.
        if (total > READ_BYTES || size > READ_BYTES) throw tooLarge(path);
        parts.push(data);
      }
      return new Uint8Array(Buffer.concat(parts));
    });
  }

  async readText(path: string, options: FileOptions = {}): Promise<string> {
    return Buffer.from(await this.read(path, options)).toString('utf8');
  }

  async *stream(path: string, options: StreamOptions = {}): AsyncGenerator<Uint8Array> {
    for await (const { data } of this.#parts(path, options)) yield data;
  }

  async open(path: string, options: StreamOptions = {}): Promise<OpenedFile> {
    const parts = this.#parts(path, options);
    const first = (await parts.next()).value as ReadPart;
    const contents = async function* () {
      yield first.data;
      for await (const { data } of parts) yield data;
    };
    return { size: first.size, mode: first.mode, contents: contents() };
  }

  /** Yields at least one part. */
  #parts(path: string, { offset = 0, length = Number.MAX_SAFE_INTEGER, ...options }: StreamOptions) {
    const parsed = parseSandboxPath(path);
    const range = parseOrThrow(rangeSchema, { offset, length }, 'COMMAND_INVALID', `The range of ${parsed}`);
    return readParts(this.#beside.of(options), parsed, { signal: options.signal, range });
  }

  async *readTar(path: string, options: Omit<FileOptions, 'ordered'> = {}): AsyncGenerator<Uint8Array> {
    yield* readTar(this.#beside.of(options), parseSandboxPath(path), options.signal);
  }

  async writeTar(path: string, tar: AsyncIterable<Uint8Array>, options: FileOptions = {}): Promise<void> {
    const parsed = parseSandboxPath(path);
    await this.#inPlace('upload', options, (steps) => writeTar(steps, parsed, tar, this.#nextId, options.signal));
  }

  async write(
    path: string,
    data: string | Uint8Array | AsyncIterable<Uint8Array>,
    options: FileOptions = {},
  ): Promise<void> {
    const parsed = parseSandboxPath(path);
    const whole = isBytes(data) ? async () => digestOf([Buffer.from(data as string)]) : undefined;
    const file = { name: 'write', path: parsed, whole } as const;
    await this.#write(file, toPartsOf(data, parsed), new Progress(undefined), options);
  }

  async list(path: string, options: ListOptions = {}): Promise<FileInfo[]> {
    const parsed = parseSandboxPath(path);
    const glob = options.glob === false ? undefined : parseGlob(parsed);
    const base = glob?.base ?? parsed;
    return this.#inPlace('list', options, async (steps) => {
      const infos: FileInfo[] = [];
      for await (const records of walk(steps, base, glob?.depth ?? 1, { signal: options.signal })) {
        for (const record of records) if (glob?.matches(record.name) !== false) infos.push(toFileInfo(record, base));
      }
      return infos;
    });
  }

  async stat(path: string, options: FileOptions = {}): Promise<FileInfo> {
    const parsed = parseSandboxPath(path);
    const { records } = await this.#one({ name: 'stat', path: parsed }, options);
    const record = records?.[0];
    if (record === undefined) throw new ShellfleetError('INTERNAL', `The host said nothing about ${parsed}.`);
    const at = parsed.replace(/\/+$/, '');
    return { ...toFileInfo({ ...record, name: at.slice(at.lastIndexOf('/') + 1) }, '/'), path: at || '/' };
  }

  async mkdir(path: string, options: FileOptions = {}): Promise<void> {
    await this.#one({ name: 'mkdir', path: parseSandboxPath(path) }, options);
  }

  async rename(from: string, to: string, options: FileOptions = {}): Promise<void> {
    await this.#one({ name: 'rename', path: parseSandboxPath(from), to: parseSandboxPath(to) }, options);
  }

  async chmod(path: string, mode: number, options: FileOptions = {}): Promise<void> {
    const parsed = parseSandboxPath(path);
    parseOrThrow(modeSchema, { mode }, 'COMMAND_INVALID', `The mode for ${JSON.stringify(parsed)}`);
    await this.#one({ name: 'chmod', path: parsed, mode }, options);
  }

  async remove(path: string, { recursive = true, ...options }: RemoveOptions = {}): Promise<void> {
    await this.#one({ name: 'remove', path: parseSandboxPath(path), recursive }, options);
  }

  async upload(localPath: string, path: string, options: TransferOptions = {}): Promise<void> {
    const parsed = parseSandboxPath(path);
    const progress = new Progress(options.onProgress);
    try {
      const found = await stat(localPath);
      if (found.isDirectory())
        return await this.#inPlace('upload', options, (steps) =>
          uploadDirectory(steps, localPath, parsed, this.#nextId, progress, options),
        );
      const mode = found.isFile() ? found.mode & PERMISSIONS : undefined;
      const whole = () => digestOf(readLocalFile(localPath, PART_BYTES));
      const file = { name: 'upload', path: parsed, mode, whole } as const;
      await this.#write(file, toParts(readLocalFile(localPath, PART_BYTES)), progress, options);
      progress.add(0, 1);
    } catch (error) {
      throw toLocalError(localPath, error);
    }
  }

  async download(path: string, localPath: string, options: TransferOptions = {}): Promise<void> {
    const parsed = parseSandboxPath(path);
    const progress = new Progress(options.onProgress);
    await this.#inPlace('download', options, async (steps) => {
      const parts = readParts(steps, parsed, { signal: options.signal });
      const first = await parts.next().catch((error: unknown) => {
        if (isShellfleetError(error) && error.code === 'FILE_IS_DIRECTORY') return undefined;
        throw error;
      });
      if (first === undefined) return downloadDirectory(steps, parsed, localPath, progress, options);
      await writeLocal(localPath, first.value, parts, progress).catch((error: unknown) => {
        throw toLocalError(localPath, error);
      });
    });
  }

  /** Sends one step. Later calls wait until the step is accepted, not until it is done. */
  async #one(operation: FileOperation, options: FileOptions): Promise<DoneStep> {
    options.signal?.throwIfAborted();
    return this.#traced(operation.name, async () => {
      if (options.ordered !== true) return doStep(this.#beside.of(options), operation);
      const sent = await this.#order.run(() => this.#ordered.send(operation));
      return sent.reply();
    });
  }

  #inPlace<T>(name: string, options: FileOptions, work: (steps: FileSteps) => Promise<T>): Promise<T> {
    return this.#traced(name, () =>
      options.ordered === true ? this.#order.runExclusive(() => work(this.#ordered)) : work(this.#beside.of(options)),
    );
  }

  #traced<T>(name: string, work: () => Promise<T>): Promise<T> {
    const attributes = () => ({ [ATTRIBUTES.sessionId]: this.#sessionId, [ATTRIBUTES.fileOperation]: name });
    return inSpan(nameSpan(SPANS.file, name), CLIENT, attributes, work);
  }

  async #write(
    { name, path, ...about }: { name: 'write' | 'upload'; path: string } & Pick<SentFile, 'mode' | 'whole'>,
    parts: Iterable<Part> | AsyncIterable<Part>,
    progress: Progress,
    options: FileOptions,
  ): Promise<void> {
    const file = { path, transfer: this.#nextId(), ...about };
    const { signal } = options;
    const onSent = (bytes: number) => progress.add(bytes, 0);
    await this.#inPlace(name, options, async (steps) =>
      Promise.all(await sendParts(steps, file, parts, { signal, onSent })),
    );
  }
}

const isBytes = (data: unknown): data is string | Uint8Array => typeof data === 'string' || data instanceof Uint8Array;

function toPartsOf(data: string | Uint8Array | AsyncIterable<Uint8Array>, path: string) {
  if (isBytes(data)) return cut(Buffer.from(data as string));
  if (typeof data === 'object' && data !== null && Symbol.asyncIterator in data) return toParts(data);
  throw new ShellfleetError('COMMAND_INVALID', `The data for ${JSON.stringify(path)} must be a string or bytes.`, {
    issues: [{ path: 'data', message: 'must be a string, bytes or an async iterable of bytes' }],
  });
}

async function writeLocal(
  localPath: string,
  first: ReadPart,
  rest: AsyncIterable<ReadPart>,
  progress: Progress,
): Promise<void> {
  const file = await openLocalFile(localPath);
  try {
    await file.write(first.data);
    progress.add(first.data.byteLength, 0);
    for await (const { data } of rest) {
      await file.write(data);
      progress.add(data.byteLength, 0);
    }
    await file.finish(first.mode);
  } catch (error) {
    await file.discard();
    throw error;
  }
  progress.add(0, 1);
}

function toFileInfo({ name, type, size, mode, modifiedAt }: FileRecord, base: string): FileInfo {
  const path = `${base.replace(/\/+$/, '')}/${name}`;
  return { name: name.slice(name.lastIndexOf('/') + 1), path, type, size, mode, modifiedAt };
}

function tooLarge(path: string): ShellfleetError {
  return new ShellfleetError(
    'FILE_TOO_LARGE',
    `${path} is larger than ${READ_BYTES} bytes, the most that is read into memory. Use files.download.`,
    { path, limit: READ_BYTES },
  );
}
