import { mkdtemp, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Assignments } from './assignments.ts';

const ASSIGNMENT = { tenant: 'default', session: 'agent-42', assignedAt: 1_000 };
const [ID, OTHER] = ['0123456789ab', 'ba9876543210'];
let directory: string;
let assignments: Assignments;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'assigned-'));
  assignments = await Assignments.open(directory);
});
afterEach(() => rm(directory, { recursive: true }));

describe('the records of assigned sandboxes', () => {
  test('are found by the next process', async () => {
    await assignments.write(ID, ASSIGNMENT);
    const next = await Assignments.open(directory);
    expect([await next.read(ID), await next.read(OTHER)]).toEqual([ASSIGNMENT, undefined]);
  });

  test('never give a sandbox to a second session', async () => {
    await assignments.write(ID, ASSIGNMENT);
    await expect(assignments.write(ID, { ...ASSIGNMENT, session: 'other' })).rejects.toThrow('EEXIST');
    expect(await assignments.read(ID)).toEqual(ASSIGNMENT);
  });

  test('name no session if the worker died while it wrote', async () => {
    await assignments.write(ID, ASSIGNMENT);
    await truncate(join(directory, ID), 9);
    expect(await assignments.read(ID)).toBeUndefined();
  });

  test('go with their sandboxes', async () => {
    await assignments.write(ID, ASSIGNMENT);
    await assignments.write(OTHER, ASSIGNMENT);
    await assignments.sweep(new Set([ID]));
    expect([await assignments.read(ID), await assignments.read(OTHER)]).toEqual([ASSIGNMENT, undefined]);
    await assignments.remove(ID);
    expect(await assignments.read(ID)).toBeUndefined();
  });
});
