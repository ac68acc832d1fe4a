import { existsSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { releaseBatch } from '@shellfleet/mailbox';
import { fleetKeys } from '@shellfleet/protocol';
import { ulid } from 'ulid';
import { describe, expect, test, vi } from 'vitest';
import type { HostServices } from '../run/host-services.ts';
import { driveBatches } from './driven-batches.ts';

const id = ulid();
vi.mock('@shellfleet/mailbox', async (original) => ({
  ...(await original<typeof import('@shellfleet/mailbox')>()),
  listOwnBatches: async () => [],
  readDueBatches: async () => [{ tenant: 't1', name: 'nightly', score: '1' }],
  takeBatch: async () => ({ lease: { id }, batch: { id, name: 'nightly', tenant: 't1', by: 'ada' }, options: {} }),
  releaseBatch: vi.fn(async () => {}),
}));

describe('a host that looks for batches', () => {
  test('gives back a batch when it is drained while it takes it', async () => {
    const batchDirectory = await mkdtemp(join(tmpdir(), 'shellfleet-driven-'));
    const host = {
      ...{ batchDirectory, fleet: fleetKeys('n'), namespace: 'n', hostId: 'h1', settings: { batches: 4, file: {} } },
      ...{ logger: { debug: vi.fn(), warn: vi.fn() } },
    } as unknown as HostServices;
    const batches = driveBatches(
      host,
      () => !existsSync(join(batchDirectory, id)) && !vi.mocked(releaseBatch).mock.calls.length,
    );
    await batches.look();
    expect(releaseBatch).toHaveBeenCalledExactlyOnceWith({ id }, { counts: false });
    expect([batches.count, await readdir(batchDirectory)]).toEqual([0, []]);
    await batches.close();
    await rm(batchDirectory, { recursive: true });
  });
});
