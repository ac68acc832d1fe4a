import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TaskResult } from '@shellfleet/client';
import { packPath } from '@shellfleet/client/driving';
import { appendResults, endBatch, readDueBatches, storeOutputs, takeBatch } from '@shellfleet/mailbox';
import { batchKeys, fleetKeys } from '@shellfleet/protocol';
import { createSealer } from '@shellfleet/sealing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ClientStage, setClientStage } from '../support/client-stage.ts';
import { runCli } from '../support/run-cli.ts';

// A client whose disk has no room for what it fetches. The test takes the part of the worker. It mounts the disk, which
// only root may, and fails for others.

const run = promisify(execFile);
const ids = ['a', 'b', 'c', 'd'];
const OUTPUT_BYTES = 100_000;

describe('a client whose disk is full', () => {
  let stage: ClientStage;
  let directory: string;
  let disk: string;
  beforeAll(async () => {
    stage = await setClientStage();
    directory = await mkdtemp(join(tmpdir(), 'shellfleet-full-'));
    disk = join(directory, 'disk');
    await mkdir(disk);
    await run('mount', ['-t', 'tmpfs', '-o', 'size=300k', 'tmpfs', disk]);
    const fleet = await stage.connect();
    const tasks = ids.map((id) => ({ id, script: 'true', outputs: { '/o': 'out/{id}' } }));
    await fleet.batches.submit(tasks, { name: 'large' });
    const access = {
      ...{ redis: stage.redis, sealer: createSealer([stage.sealKey]), fleet: fleetKeys(stage.keyspace) },
      keys: batchKeys(stage.keyspace, 'default', 'large'),
    };
    const [due] = await readDueBatches(stage.redis, access.fleet, 1);
    const taken = due && (await takeBatch(access, due, 'host-1'));
    if (taken === undefined) throw new Error('it was not due');
    await writeFile(join(directory, 'fetched'), randomBytes(OUTPUT_BYTES));
    for (const id of ids) {
      const packed = await packPath(join(directory, 'fetched'), 1_000_000);
      await storeOutputs(taken.lease, id, [{ path: '/o', packed }]);
      const line = {
        id,
        task: id,
        repeat: 1,
        passed: true,
        outcome: 'success',
        sessionId: 's',
        results: [],
        attempts: 1,
      };
      const more = {
        startedAt: new Date(0).toISOString(),
        durationMs: 1,
        outputBytes: 0,
        outputs: { '/o': { path: '' } },
      };
      await appendResults(taken.lease, [JSON.stringify({ ...line, ...more })]);
    }
    await endBatch(taken.lease, { totals: {}, progress: {} });
  });
  afterAll(async () => {
    await stage?.[Symbol.asyncDispose]();
    await run('umount', [disk]);
    await rm(directory, { recursive: true });
  });

  const attach = () => runCli(stage, ['batch', 'attach', 'large', '--out', 'results.jsonl'], { cwd: disk });
  const results = async (): Promise<TaskResult[]> =>
    (await readFile(join(disk, 'results.jsonl'), 'utf8'))
      .split('\n')
      .flatMap((line) => (line ? [JSON.parse(line)] : []));

  test('records no task whose outputs it could not write, and continues with room', async () => {
    expect(await attach()).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/out\/c on this machine: ENOSPC: .*Make room there.*\(FILE_DENIED\)\n$/),
    });
    expect((await results()).map(({ id }) => id)).toEqual(['a', 'b']);
    await run('mount', ['-o', 'remount,size=4m', disk]);
    expect((await attach()).stderr).not.toContain('missing');
    expect((await results()).flatMap(({ outputs }) => outputs?.['/o']?.path)).toEqual(
      ids.map((id) => join(disk, 'out', id)),
    );
    expect((await readdir(join(disk, 'out'))).sort()).toEqual(ids);
  });

  test('reports the full disk when the file of results itself does not fit', async () => {
    await rm(join(disk, 'out'), { recursive: true });
    await rm(join(disk, 'results.jsonl.outputs'));
    await writeFile(join(disk, 'results.jsonl'), '');
    await writeFile(join(disk, 'filler'), Buffer.alloc(8_000_000)).catch(() => {});
    expect(await attach()).toMatchObject({
      exitCode: 125,
      stderr: expect.stringMatching(/^shellfleet: \S+ on this machine.*ENOSPC.*Make room there.*\(FILE_DENIED\)\n$/),
    });
  });
});
