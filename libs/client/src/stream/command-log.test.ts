import { readStoredSession } from '@shellfleet/mailbox';
import { encodeWireResult, newResult, ShellfleetError, type StoredChunk, sessionKeys } from '@shellfleet/protocol';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { requestFromHost } from '../hosts/request-from-host.ts';
import { readLog } from './command-log.ts';
import { type EntryStep, followEntries } from './command-output.ts';

vi.mock(import('../hosts/request-from-host.ts'), () => ({ requestFromHost: vi.fn() }));
vi.mock(import('./command-output.ts'), async (original) => ({ ...(await original()), followEntries: vi.fn() }));
vi.mock(import('@shellfleet/mailbox'), async (original) => ({
  ...(await original()),
  readRecord: vi.fn(async () => ({ host: 'h1' }) as never),
  readStoredSession: vi.fn(),
}));
afterEach(() => void vi.resetAllMocks());

const ENTRY = '01J00000000000000000000000';
const keys = sessionKeys('ns' as never, 'tenant' as never, 's' as never);

const placementOf = (policy: string) => JSON.stringify({ policy, priority: 0, labels: {}, sealedWith: '' });
const RESULT = encodeWireResult(
  newResult(
    { outcome: 'success', exitCode: 0, reason: 'exited' },
    { hostId: 'h1', shell: { state: 'kept', epoch: 1 } },
  ),
);

function output(id: string, offset: number, text: string): EntryStep {
  const data = new TextEncoder().encode(text);
  return { type: 'output', id, entry: { stream: 'stdout', offset, data, omittedBytes: 0 } as StoredChunk };
}

describe('log of a command', () => {
  test('includes bytes that reach the stream during a request to the host', async () => {
    const reads: unknown[] = [];
    const stored = [[output('1-0', 0, 'abc')], [output('2-0', 3, 'de')]];
    vi.mocked(followEntries).mockImplementation(async function* (_context, _keys, _entry, { after }) {
      reads.push(after);
      yield* stored.shift() ?? [];
    });
    const data = Buffer.from('fghij');
    vi.mocked(requestFromHost).mockImplementation(
      async () => ({ pieces: [{ stream: 'stdout', offset: 5, data }], more: false }) as never,
    );
    const chunks = await Array.fromAsync(readLog({} as never, keys, ENTRY, {}));
    expect(chunks.map(({ text, omittedBytes }) => [text, omittedBytes])).toEqual([
      ['abc', undefined],
      ['de', undefined],
      ['fghij', undefined],
    ]);
    expect(reads).toEqual([undefined, '1-0']);
  });

  test.each([
    [
      'kubernetes',
      [
        ['abc', undefined],
        ['', 7],
      ],
    ],
    ['docker', 'HOST_UNREACHABLE'],
  ])('counts what a worker under %s had when that is gone for good', async (policy, expected) => {
    const end = { stream: 'stdout', offset: 10, data: new Uint8Array(), omittedBytes: 7 } as StoredChunk;
    vi.mocked(followEntries).mockImplementation(async function* () {
      yield output('1-0', 0, 'abc');
      yield { type: 'output', id: '2-0', entry: end };
      yield { type: 'completed', id: '3-0', result: RESULT };
    });
    const gone = new ShellfleetError('HOST_UNREACHABLE', 'gone');
    vi.mocked(requestFromHost).mockRejectedValue(gone);
    vi.mocked(readStoredSession).mockResolvedValue({ placement: placementOf(policy) } as never);
    const context = { namespace: 'ns', redis: { exists: async () => 0 } } as never;
    const read = Array.fromAsync(readLog(context, keys, ENTRY, {})).then(
      (chunks) => chunks.map(({ text, omittedBytes }) => [text, omittedBytes]),
      (error: ShellfleetError) => error.code,
    );
    expect(await read).toEqual(expected);
  });

  test('counts bytes once when neither the stream nor the host has them', async () => {
    const stored = [[output('1-0', 0, 'abc')]];
    vi.mocked(followEntries).mockImplementation(async function* () {
      yield* stored.shift() ?? [];
    });
    const data = Buffer.from('fghij');
    vi.mocked(requestFromHost).mockImplementation(
      async () => ({ pieces: [{ stream: 'stdout', offset: 5, data }], more: false }) as never,
    );
    const chunks = await Array.fromAsync(readLog({} as never, keys, ENTRY, {}));
    expect(chunks.map(({ text, omittedBytes }) => [text, omittedBytes])).toEqual([
      ['abc', undefined],
      ['fghij', 2],
    ]);
  });
});
