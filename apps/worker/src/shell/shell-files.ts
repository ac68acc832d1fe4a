// The file calls on one connection to a keeper: file operations beside the entry.

import { type Resolvers, withResolvers } from '@shellfleet/concurrency';
import {
  decodeFileEnd,
  EntryKind,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  MalformedFrame,
} from '@shellfleet/keeper';
import { STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import { encodeFileStart, type FileFailure, type KeeperFileOperation, toFileFailure } from './file-start.ts';

/** How a call ended. */
export type FileCallEnd =
  | { type: 'done'; stdout: Buffer; stderr: Buffer }
  | { type: 'failed'; failure: FileFailure; stderr: Buffer }
  /** It ended on an earlier connection. What it printed is gone. */
  | { type: 'done-before'; failure: FileFailure | undefined }
  /** A signal ended it: it may have been done in part. */
  | { type: 'killed' }
  /** It runs already, or as many as may run do. */
  | { type: 'busy' }
  | { type: 'invalid' }
  /** The connection broke: it may have been done. */
  | { type: 'gone' };

export interface ShellFiles {
  /** `id`: a ULID. A keeper begins each at most once. At most four calls at a time. */
  call(id: string, operation: KeeperFileOperation, timeoutMs: number): Promise<FileCallEnd>;
}

interface Called {
  parts: Record<StreamName, Buffer[]>;
  received: Record<StreamName, number>;
  ended: Resolvers<FileCallEnd>;
}

/** No operation that this worker asks for prints more. */
const MOST_BYTES = 4 << 20;

export class KeeperFiles implements ShellFiles {
  readonly #send: (frame: Partial<Frame> & { type: number }) => void;
  readonly #calls = new Map<string, Called>();
  #isGone = false;

  constructor(send: (frame: Partial<Frame> & { type: number }) => void) {
    this.#send = send;
  }

  call(id: string, operation: KeeperFileOperation, timeoutMs: number): Promise<FileCallEnd> {
    if (this.#isGone) return Promise.resolve({ type: 'gone' });
    const called: Called = {
      parts: { stdout: [], stderr: [] },
      received: { stdout: 0, stderr: 0 },
      ended: withResolvers(),
    };
    this.#calls.set(id, called);
    const payload = encodeFileStart(operation, timeoutMs);
    this.#send({ type: FrameType.fileCall, flags: EntryKind.file, id: entryIdToBytes(id), payload });
    return called.ended.promise;
  }

  output(frame: Frame): void {
    const called = this.#calls.get(entryIdFromBytes(frame.id));
    const stream = STREAM_NAMES[frame.stream];
    if (called === undefined || stream === undefined) return;
    if (frame.offset !== called.received[stream])
      throw new MalformedFrame(`Output of a file call at ${frame.offset} where ${called.received[stream]} comes next.`);
    called.received[stream] += frame.payload.length;
    if (called.received[stream] > MOST_BYTES) throw new MalformedFrame('Output of a file call without end.');
    called.parts[stream].push(Buffer.from(frame.payload));
  }

  end(frame: Frame): void {
    const id = entryIdFromBytes(frame.id);
    const called = this.#calls.get(id);
    if (called === undefined) return;
    const end = decodeFileEnd(frame.payload);
    const { received } = called;
    if (end.totals.stdout !== received.stdout || end.totals.stderr !== received.stderr)
      throw new MalformedFrame(`An end of a file call after ${end.totals.stdout} bytes; ${received.stdout} came.`);
    this.#calls.delete(id);
    called.ended.resolve(toCallEnd(end, called));
  }

  /** The connection ended. */
  gone(): void {
    this.#isGone = true;
    for (const called of this.#calls.values()) called.ended.resolve({ type: 'gone' });
    this.#calls.clear();
  }
}

function toCallEnd({ errno, signal, refusal }: ReturnType<typeof decodeFileEnd>, { parts }: Called): FileCallEnd {
  if (refusal === 'running' || refusal === 'busy') return { type: 'busy' };
  if (refusal !== undefined && refusal !== 'ended') return { type: 'invalid' };
  if (signal !== 0) return { type: 'killed' };
  const failure = errno === 0 ? undefined : toFileFailure(errno);
  if (refusal === 'ended') return { type: 'done-before', failure };
  const stderr = Buffer.concat(parts.stderr);
  return failure === undefined
    ? { type: 'done', stdout: Buffer.concat(parts.stdout), stderr }
    : { type: 'failed', failure, stderr };
}
