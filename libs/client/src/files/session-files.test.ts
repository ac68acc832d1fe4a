import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallOrder } from '@shellfleet/concurrency';
import { readSealedReply } from '@shellfleet/mailbox';
import { type FileReply, newResult, sessionKeys } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { sendEntry } from '../submit/send-entry.ts';
import { SessionFiles } from './session-files.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), readSealedReply: vi.fn() }));
vi.mock(import('../submit/send-entry.ts'), async (original) => ({ ...(await original()), sendEntry: vi.fn() }));

/**
 * Returns files whose steps succeed, each with the next reply and the next epoch. An undefined reply is no longer kept.
 */
function filesWith(answers: (FileReply | undefined)[], epochs: number[] = []): SessionFiles {
  let step = 0;
  vi.mocked(sendEntry).mockImplementation(async () => {
    const shell = { state: 'kept' as const, epoch: epochs[step] ?? 1 };
    vi.mocked(readSealedReply).mockResolvedValueOnce(JSON.stringify(answers[step++]));
    const pending = {
      entryId: `e${step}`,
      result: async () => newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }, { shell }),
    };
    return { pending, deduplicated: false } as never;
  });
  const context = { redis: {}, sealer: { open: (text: string) => text }, nextId: () => 'id' };
  const session = { id: 's', keys: sessionKeys('ns', 'tenant', 's') };
  return new SessionFiles(context as never, session as never, new CallOrder());
}

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-files-'));
});
afterEach(async () => {
  vi.resetAllMocks();
  await rm(directory, { recursive: true });
});

const ordered = { ordered: true };
const full = { data: Buffer.alloc(524_288, 'x').toString('base64') };
const rest = { data: Buffer.from('end').toString('base64') };

describe('file access of a session', () => {
  test('reads a file in parts until a part is not full', async () => {
    expect(await filesWith([full, rest]).readText('/f', ordered)).toBe(`${'x'.repeat(524_288)}end`);
  });

  test.each<[string, (files: SessionFiles) => Promise<unknown>, FileReply[]]>([
    ['read whose first reply is gone', (files) => files.read('/f', ordered), []],
    ['read whose later reply is gone', (files) => files.read('/f', ordered), [full]],
    ['download whose later reply is gone', (files) => files.download('/f', join(directory, 'f'), ordered), [full]],
    ['list whose reply is gone', (files) => files.list('/', ordered), []],
  ])('rejects a %s with RESULT_EXPIRED, and leaves no partial file', async (_what, act, answers) => {
    await expect(act(filesWith(answers))).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
    expect(await readdir(directory)).toEqual([]);
  });

  test('reports a removal as done even when its reply is gone', async () => {
    await filesWith([undefined]).remove('/f', ordered);
  });

  test('refuses to join the parts of a file from two sandboxes', async () => {
    const read = filesWith([full, rest], [1, 2]).read('/f', ordered);
    await expect(read).rejects.toMatchObject({ code: 'CONTAINER_LOST', context: { path: '/f' } });
  });

  test('refuses a file over the limit of read at its first part', async () => {
    const read = filesWith([{ ...full, size: 2 ** 40 }]).read('/f', ordered);
    await expect(read).rejects.toMatchObject({ code: 'FILE_TOO_LARGE', context: { path: '/f', limit: 268_435_456 } });
  });
});
