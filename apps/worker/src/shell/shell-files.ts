// The file calls on one connection to a keeper.

import {
  decodeFileEnd,
  entryIdFromBytes,
  entryIdToBytes,
  type Frame,
  FrameType,
  MAX_TO_KEEPER,
  MalformedFrame,
} from '@shellfleet/keeper';
import { STREAM_NAMES, type StreamName } from '@shellfleet/protocol';
import { type FileFailure, type KeeperFileOperation, toFileFailure, toFilePayload } from './keeper-operation.ts';

export type FileCallEnd =
  | { type: 'done'; stdout: Buffer; stderr: Buffer }
  | { type: 'failed'; failure: FileFailure; stderr: Buffer }
  /** The call ended on an earlier connection. Its output is gone. */
  | { type: 'done-before'; failure: FileFailure | undefined }
  /** A signal ended the call. The operation may be done in part. */
  | { type: 'killed' }
  /** A call with this id runs already, or the maximum of calls runs. */
  | { type: 'busy' }
  | { type: 'invalid' }
  /** The connection broke. The operation may be done. */
  | { type: 'gone' };

export interface ShellFiles {
  /** Lets the keeper do an operation. It begins each ULID at most once, and runs at most five calls at a time. */
  call(id: string, operation: KeeperFileOperation, timeoutMs: number): Promise<FileCallEnd>;
  /** Returns whether the keeper has begun the id. False also when the connection breaks. */
  hasBegun(id: string): Promise<boolean>;
  /** Kills a running call, which ends as `killed`. */
  stop(id: string): void;
}

interface Called {
  parts: Record<StreamName, Buffer[]>;
  received: Record<StreamName, number>;
  ended: PromiseWithResolvers<FileCallEnd>;
}

/** Limit above the output of every operation. */
const MOST_BYTES = 4 << 20;

export class KeeperFiles implements ShellFiles {
  readonly #send: (frame: Partial<Frame> & { type: number }) => void;
  readonly #calls = new Map<string, Called>();
  #isGone = false;

  constructor(send: (frame: Partial<Frame> & { type: number }) => void) {
    this.#send = send;
  }

  call(id: string, operation: KeeperFileOperation, timeoutMs: number): Promise<FileCallEnd> {
    const payload = toFilePayload(operation, timeoutMs);
    return payload.length > MAX_TO_KEEPER ? Promise.resolve({ type: 'invalid' }) : this.#call(id, payload);
  }

  /** Sends a call without a payload, which begins nothing. The keeper refuses an unknown id as invalid. */
  async hasBegun(id: string): Promise<boolean> {
    const { type } = await this.#call(id, new Uint8Array(0));
    return type !== 'invalid' && type !== 'gone';
  }

  stop(id: string): void {
    this.#send({ type: FrameType.stop, id: entryIdToBytes(id) });
  }

  #call(id: string, payload: Uint8Array): Promise<FileCallEnd> {
    if (this.#isGone) return Promise.resolve({ type: 'gone' });
    const called: Called = {
      parts: { stdout: [], stderr: [] },
      received: { stdout: 0, stderr: 0 },
      ended: Promise.withResolvers(),
    };
    this.#calls.set(id, called);
    this.#send({ type: FrameType.fileCall, id: entryIdToBytes(id), payload });
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
