import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Worker } from 'node:worker_threads';
import { percentile } from '../../bench/measure/spread.ts';
import { mostResidentBytes, residentBytes } from '../resident-bytes.ts';
import type { ApiCaller } from './api-caller.ts';
import { EventReader } from './event-reader.ts';

interface Trial {
  caller: ApiCaller;
  /** Process of the server. */
  pid: number;
  /** Command whose output is read. It prints nothing before `begin` was called. */
  commandId: string;
  begin(): Promise<unknown>;
  readers: number;
  /** Events after which every third reader leaves, to resume after its last one. */
  leaveAfter: number;
}

export interface ReadByMany {
  /** Digests of what the readers have received. */
  digests: Set<string>;
  /** Bytes of the events that all readers have received. */
  bytes: number;
  /** Milliseconds from the beginning until all readers were at the end. */
  tookMs: number;
  /** Milliseconds of requests that were made meanwhile, at the 95th percentile. */
  otherMs: number;
  /** Resident bytes of the server: with all streams open, and the most while they were read. */
  resident: { open: number; most: number };
}

const OPEN_AT_ONCE = 100;

/** Lets many readers follow one command, and one that reads nothing. Some of them leave and resume. */
export async function readByMany(trial: Trial): Promise<ReadByMany> {
  const { caller, pid, commandId, begin, leaveAfter } = trial;
  const path = `/commands/${commandId}/events`;
  const readers = Array.from({ length: trial.readers }, () => new EventReader(caller, path));
  const replies: IncomingMessage[] = [];
  for (let at = 0; at < readers.length; at += OPEN_AT_ONCE)
    replies.push(...(await Promise.all(readers.slice(at, at + OPEN_AT_ONCE).map((reader) => reader.open()))));
  const idle = await new EventReader(caller, path).open();
  const open = await residentBytes(pid);
  const { url, key } = caller;
  await using probe = startProbe({ url, key });
  const from = performance.now();
  const reading = Promise.all([
    begin(),
    ...readers.map(async (reader, index) => {
      const reply = replies[index];
      if (reply === undefined) return;
      if (index % 3 > 0) return reader.read(reply);
      await reader.read(reply, leaveAfter);
      await reader.read(await reader.open());
    }),
  ]);
  const most = await mostResidentBytes(pid, reading);
  await reading;
  const tookMs = performance.now() - from;
  idle.destroy();
  return {
    digests: new Set(readers.map(({ digest }) => digest)),
    bytes: readers.reduce((sum, { bytes }) => sum + bytes, 0),
    ...{ tookMs, otherMs: percentile(await probe.end(), 0.95), resident: { open, most } },
  };
}

function startProbe(workerData: { url: string; key: string }) {
  const worker = new Worker(new URL('./probe-thread.ts', import.meta.url), { workerData });
  const times = once(worker, 'message') as Promise<[number[]]>;
  times.catch(() => {});
  return {
    async end(): Promise<number[]> {
      worker.postMessage('end');
      return (await times)[0];
    },
    async [Symbol.asyncDispose]() {
      await worker.terminate();
    },
  };
}
