import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CallOrder } from '@shellfleet/concurrency';
import { readSealedReply } from '@shellfleet/mailbox';
import { type FileReply, newResult, sessionKeys } from '@shellfleet/protocol';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { sendEntry } from '../submit/send-entry.ts';
import { SessionFiles } from './session-files.ts';

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), readSealedReply: vi.fn() }));
vi.mock(import('../submit/send-entry.ts'), async (original) => ({ ...(await original()), sendEntry: vi.fn() }));

/** Returns a session whose steps succeed with the next reply (undefined: gone) under the next epoch. */
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

test('a file is its parts, up to the first that is not full', async () => {
  expect(await filesWith([full, rest]).readText('/f', ordered)).toBe(`${'x'.repeat(524_288)}end`);
});

test.each<[string, (files: SessionFiles) => Promise<unknown>, FileReply[]]>([
  ['read whose first answer is gone', (files) => files.read('/f', ordered), []],
  ['read whose later answer is gone', (files) => files.read('/f', ordered), [full]],
  ['download whose later answer is gone', (files) => files.download('/f', join(directory, 'f'), ordered), [full]],
  ['list whose answer is gone', (files) => files.list('/', ordered), []],
])('a %s rejects with RESULT_EXPIRED, and is no end of the file', async (_what, act, answers) => {
  await expect(act(filesWith(answers))).rejects.toMatchObject({ code: 'RESULT_EXPIRED' });
  expect(await readdir(directory)).toEqual([]);
});

test('a removal is done whether its answer is there or not', async () => {
  await filesWith([undefined]).remove('/f', ordered);
});

test('a file is not put together from parts of two sandboxes', async () => {
  const read = filesWith([full, rest], [1, 2]).read('/f', ordered);
  await expect(read).rejects.toMatchObject({ code: 'CONTAINER_LOST', context: { path: '/f' } });
});

test('a file over the limit of read is refused at its first part', async () => {
  const read = filesWith([{ ...full, size: 2 ** 40 }]).read('/f', ordered);
  await expect(read).rejects.toMatchObject({ code: 'FILE_TOO_LARGE', context: { path: '/f', limit: 268_435_456 } });
});
