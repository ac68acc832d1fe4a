import type { Entry } from '@shellfleet/mailbox';
import { type FileOperation, sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import type { FileCallEnd } from '../shell/shell-files.ts';
import { EntryRun } from './entry-run.ts';
import { runFileOperation } from './file-operation.ts';
import { SessionTimes } from './session-times.ts';

const WRITE: FileOperation = { name: 'mkdir', path: '/d' };
const READ: FileOperation = { name: 'stat', path: '/d' };
const DONE: FileCallEnd = { type: 'done', stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };
const GONE: FileCallEnd = { type: 'gone' };
const BUSY: FileCallEnd = { type: 'busy' };
const KILLED: FileCallEnd = { type: 'killed' };
const DONE_BEFORE: FileCallEnd = { type: 'done-before', failure: undefined };

const entry = { id: 'e', acceptedAt: 0, startedAt: 0, offsets: { stdout: 0, stderr: 0 }, seq: 0 } as unknown as Entry;

/** Runs an ordered operation whose keeper answers its calls with `ends`. Later calls wait until they are stopped. */
function stage(ends: FileCallEnd[], { sandboxDies = false } = {}) {
  const asked: string[] = [];
  const stops: string[] = [];
  let connections = 1;
  let stop = () => {};
  const files = {
    call(id: string): Promise<FileCallEnd> {
      asked.push(id);
      const end = ends.shift();
      if (end !== undefined) return Promise.resolve(end);
      return new Promise((resolve) => {
        stop = () => resolve(KILLED);
      });
    },
    stop(id: string) {
      stops.push(id);
      stop();
    },
  };
  const shell = {
    ...{ live: { files }, epoch: 1, reportedEpoch: 1, lossReason: '', opened: { from: 0, to: 0 } },
    ...{ unresponsive: false, death: { reason: 'oom' }, image: undefined },
    async reconnect() {
      connections += 1;
      return sandboxDies ? undefined : {};
    },
    giveUp: async () => undefined,
  };
  const session = {
    ...{ owner: { keys: sessionKeys('ns', 't', 's'), host: 'here' }, shell },
    times: new SessionTimes({ ownedAt: 0, activeAt: 0, clockAheadMs: 0 }),
    spec: sessionSpecSchema.parse({}),
    signal: new AbortController().signal,
    takesRealPaths: () => false,
  };
  const run = new EntryRun(entry, 'start', async () => true);
  const ended = async (operation: FileOperation) => {
    const { result, answer } = await runFileOperation(run, operation, session as never);
    const code = result.outcome === 'error' ? result.error.code : undefined;
    return { outcome: result.outcome, ...(code && { code }), ...(answer && { answer: JSON.parse(answer) }) };
  };
  return { ended, run, asked, stops, connections: () => connections };
}

describe('an ordered file operation', () => {
  test('is a file call with the id of its entry', async () => {
    const { ended, asked } = stage([DONE]);
    expect(await ended(READ)).toEqual({ outcome: 'success', answer: { records: [] } });
    expect(asked).toEqual(['e']);
  });

  test.each<[string, FileCallEnd[]]>([
    ['runs for an earlier worker', [BUSY, BUSY, DONE_BEFORE]],
    ['ended for an earlier worker', [DONE_BEFORE]],
    ['was under way when the connection broke', [GONE, BUSY, DONE_BEFORE]],
  ])('is requested under one id if it is a change that %s', async (_, ends) => {
    const { ended, asked } = stage([...ends]);
    expect(await ended(WRITE)).toEqual({ outcome: 'success', answer: {} });
    expect(new Set(asked)).toEqual(new Set(['e']));
  });

  test.each<[string, FileCallEnd]>([
    ['ended for an earlier worker', DONE_BEFORE],
    ['was killed', KILLED],
  ])('is done again under another id if it is a read that %s', async (_, end) => {
    const { ended, asked } = stage([end, DONE]);
    expect(await ended(READ)).toMatchObject({ outcome: 'success' });
    expect(new Set(asked).size).toBe(2);
  });

  test('fails if it is a read that is killed every time', async () => {
    expect(await stage(Array.from({ length: 9 }, () => KILLED)).ended(READ)).toEqual({
      outcome: 'error',
      code: 'CONTAINER_LOST',
    });
  });

  test.each([READ, WRITE])('is stopped when its entry is cancelled: $name', async (operation) => {
    const { ended, run, stops, asked } = stage([]);
    const end = ended(operation);
    run.cancel();
    expect(await end).toEqual({ outcome: 'error', code: 'CONTAINER_LOST' });
    expect([asked, stops]).toEqual([['e'], ['e']]);
  });

  test('is stopped at once when its entry was cancelled before', async () => {
    const { ended, run, stops } = stage([]);
    run.cancel();
    expect(await ended(WRITE)).toEqual({ outcome: 'error', code: 'CONTAINER_LOST' });
    expect(stops).toEqual(['e']);
  });

  test('fails when its sandbox dies', async () => {
    const { ended, asked } = stage([GONE], { sandboxDies: true });
    expect(await ended(WRITE)).toEqual({ outcome: 'error', code: 'CONTAINER_LOST' });
    expect(asked).toEqual(['e']);
  });

  test('fails when six connections in a row break without an answer', async () => {
    const { ended, connections } = stage(Array.from({ length: 9 }, () => GONE));
    expect(await ended(WRITE)).toMatchObject({ outcome: 'error' });
    expect(connections()).toBe(6);
  });
});
