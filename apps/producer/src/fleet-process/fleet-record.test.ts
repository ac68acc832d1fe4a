import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeFleetRecord } from './fleet-record.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-record-'));
});
afterEach(() => rm(directory, { recursive: true, force: true }));

describe('the record of a fleet', () => {
  test('is removed with what killed processes left of it, but not while one writes', async () => {
    // No process has this number: it is above the most that Linux allows.
    const names = ['up.json', 'up.json.4194305', `up.json.${process.pid}`, 'up.json.old'];
    for (const name of names) await writeFile(join(directory, name), '{}');
    await removeFleetRecord({ SHELLFLEET_STATE_DIR: directory });
    expect((await readdir(directory)).sort()).toEqual([`up.json.${process.pid}`, 'up.json.old'].sort());
  });
});
