import { encodeWireResult, type LogPage, newResult, type StoredChunk, sessionKeys } from '@shellfleet/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { requestFromHost } from '../hosts/request-from-host.ts';
import { type EntryStep, followEntries } from './command-output.ts';
import { followWholeOutput } from './whole-output.ts';

vi.mock(import('../hosts/request-from-host.ts'), () => ({ requestFromHost: vi.fn() }));
vi.mock(import('./command-output.ts'), async (original) => ({ ...(await original()), followEntries: vi.fn() }));
vi.mock(import('@shellfleet/mailbox'), async (original) => ({
  ...(await original()),
  readRecord: vi.fn(async () => ({ host: 'h1' }) as never),
}));
afterEach(() => void vi.resetAllMocks());

const ENTRY = '01J00000000000000000000000';
const keys = sessionKeys('ns' as never, 'tenant' as never, 's' as never);
const encode = (text: string) => new TextEncoder().encode(text);
const result = encodeWireResult(newResult({ outcome: 'lost' }, { hostId: 'h1' }));

function output(id: string, offset: number, text: string, rest: Partial<StoredChunk> = {}): EntryStep {
  const data = encode(text);
  const entry = { stream: 'stdout', seq: 0, rawFrom: offset, rawTo: offset + data.length, omittedBytes: 0, lines: 0 };
  return { type: 'output', id, entry: { ...entry, offset, data, ...rest } as StoredChunk };
}
/** Returns the event that counts bytes which the stream does not have. */
const closing = (id: string, rawFrom: number, rawTo: number) =>
  output(id, rawTo, '', { rawFrom, rawTo, omittedBytes: rawTo - rawFrom });
const idle: EntryStep = { type: 'idle', wake: () => {} };
const completed: EntryStep = { type: 'completed', result };
const ended = (stdout: number): EntryStep => ({ type: 'ended', id: '9-0', stored: { stdout, stderr: 0 } });

function give(steps: EntryStep[], log = '') {
  vi.mocked(followEntries).mockImplementation(async function* () {
    for (const step of steps) {
      if (step.type === 'idle') await new Promise(setImmediate);
      yield step;
    }
  });
  const asked: unknown[] = [];
  vi.mocked(requestFromHost).mockImplementation(async (_context, _host, _keys, request) => {
    if (request.type !== 'log') throw new Error('another request');
    asked.push([request.attached, request.from.stdout]);
    const from = Math.max(5, request.from.stdout);
    // The host returns two bytes per page, of a log that begins at byte 5.
    const data = Buffer.from(log.slice(from - 5, from - 3));
    const page: LogPage = { pieces: [], more: from + 2 < log.length + 5 };
    if (data.length > 0) page.pieces.push({ stream: 'stdout', offset: from, data });
    return page as never;
  });
  return asked;
}

async function read(reportAfterBytes: number) {
  const chunks = await Array.fromAsync(followWholeOutput({} as never, keys, ENTRY, { reportAfterBytes }));
  return chunks.map(({ text, omittedBytes, omittedBecause }) =>
    omittedBytes === undefined ? text : [text, omittedBytes, omittedBecause],
  );
}

describe('whole output', () => {
  // WHOLE-1
  test('takes bytes that the stream lacks from the host, once and in order', async () => {
    const asked = give(
      [output('1-0', 0, 'abcde'), idle, idle, idle, closing('2-0', 5, 10), completed, ended(10)],
      'fghij',
    );
    expect((await read(2)).join('')).toBe('abcdefghij');
    expect(asked[0]).toEqual(['reads', 5]);
  });

  // WHOLE-1
  test('holds a page of the host until the stream has reached its position', async () => {
    give(
      [output('1-0', 0, 'abc'), idle, output('2-0', 3, 'de'), idle, idle, closing('3-0', 5, 10), completed, ended(10)],
      'fghij',
    );
    expect((await read(2)).join('')).toBe('abcdefghij');
  });

  // WHOLE-2
  test('sends no request to the host for a command that prints little', async () => {
    const asked = give([output('1-0', 0, 'abcde'), idle, idle, completed, ended(5)]);
    expect(await read(5)).toEqual(['abcde']);
    expect(asked).toEqual([]);
  });

  test('requests missed bytes from the host at the end for an unattached reader', async () => {
    const asked = give([output('1-0', 0, 'abcde'), closing('2-0', 5, 8), completed, ended(8)], 'fgh');
    expect((await read(Number.POSITIVE_INFINITY)).join('')).toBe('abcdefgh');
    expect(asked).toEqual([
      ['reads', 5],
      ['reads', 7],
    ]);
  });

  // WHOLE-3
  test('counts missing bytes at their position when neither stream nor host has them', async () => {
    give([output('1-0', 0, 'abc'), closing('2-0', 3, 10), completed, ended(10)], 'fghi');
    expect(await read(Number.POSITIVE_INFINITY)).toEqual([
      'abc',
      ['fg', 2, 'over-budget'],
      'hi',
      ['', 1, 'over-budget'],
    ]);
  });

  test('reports output that a rule withheld as withheld', async () => {
    const blocked = { type: 'email', reason: 'matched' } as const;
    const match = output('2-0', 5, '', { rawFrom: 5, rawTo: 9, omittedBytes: 4, blocked });
    const asked = give([output('1-0', 0, 'abcde'), match, completed, ended(9)]);
    expect(await read(Number.POSITIVE_INFINITY)).toEqual(['abcde', ['', 4, 'withheld']]);
    expect(asked).toEqual([]);
  });
});
