import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BatchLease } from '@shellfleet/mailbox';
import { batchKeys } from '@shellfleet/protocol';
import { createSealer, createSealKey, sealPlace } from '@shellfleet/sealing';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { fetchOutputs } from '../batch/task-outputs.ts';
import type { Files } from '../files/files.ts';
import { DetachedPlaces } from './detached-places.ts';
import { packPath } from './pack-path.ts';

let directory: string;
let places: DetachedPlaces;
const onDiskFailed = vi.fn();
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-places-'));
  onDiskFailed.mockClear();
  return () => rm(directory, { recursive: true });
});

/** Stores blobs of zeros, and makes the places of a driver that may unpack 1 MiB. */
async function storeZeros(sizes: Record<string, number>): Promise<void> {
  const [sealer, keys, id] = [createSealer([createSealKey()]), batchKeys('n', 't', 'b'), 'id'];
  const stored = new Map<string, string>();
  for (const [blob, size] of Object.entries(sizes)) {
    await writeFile(join(directory, blob), Buffer.alloc(size));
    const part = `${blob}.0`;
    const packed = await packPath(join(directory, blob), 1_048_576);
    stored.set(part, sealer.seal(packed, sealPlace('batch-file', keys, { batch: keys.name, id, part })));
  }
  const redis = { hget: async (_key: string, part: string) => stored.get(part) ?? null };
  const lease = { redis, sealer, keys, id } as unknown as BatchLease;
  places = new DetachedPlaces(lease, directory, { retry: (call) => call(), onDiskFailed }, 1_048_576);
}

const fullDisk = () => Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC', syscall: 'write' });

describe('the files of a detached batch on the machine of its driver', () => {
  test('have one limit together, although each is small', async () => {
    await storeZeros({ a: 600_000, b: 600_000, c: 300_000 });
    const [a, b, c] = await Promise.allSettled(['a', 'b', 'c'].map(places.fileOf));
    expect(b).toMatchObject({ status: 'rejected', reason: { code: 'FILE_TOO_LARGE' } });
    expect([a?.status, c?.status]).toEqual(['fulfilled', 'fulfilled']);
    expect((await readFile(await places.fileOf('c'))).byteLength).toBe(300_000);
    expect(onDiskFailed).not.toHaveBeenCalled();
  });

  test('make the driver leave the batch when an output meets a full disk', async () => {
    await storeZeros({});
    const outputs = places.outputsOf({ id: 'a', outputs: { '/o': 'o' } }, 1);
    const fetch = (error: Error) =>
      fetchOutputs(
        { download: () => Promise.reject(error) } as unknown as Files,
        outputs,
        new AbortController().signal,
      );
    await fetch(Object.assign(new Error('ENOENT'), { code: 'ENOENT', syscall: 'open' }));
    expect(onDiskFailed).not.toHaveBeenCalled();
    await expect(fetch(fullDisk())).rejects.toThrow('ENOSPC');
    expect(onDiskFailed).toHaveBeenCalledOnce();
  });
});
