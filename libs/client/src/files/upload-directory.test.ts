import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileOperation } from '@shellfleet/protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { DoneStep, FileSteps } from './file-steps.ts';
import { Progress } from './progress.ts';
import { uploadDirectory } from './upload-directory.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'shellfleet-upload-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** Returns steps in a sandbox that is replaced after `replacedAfter` steps. */
const stepsUntil = (ahead: number, replacedAfter: number) => {
  const done: FileOperation[] = [];
  const steps: FileSteps = {
    ahead,
    async send(operation) {
      const epoch = done.push(operation) > replacedAfter ? 2 : 1;
      return { reply: async (): Promise<DoneStep> => ({ epoch }) };
    },
  };
  return { done, steps };
};

describe('upload of a directory', () => {
  // mutants-3: fault 1 of the product, and `upload-check`.
  test.each([1, 4])('fails with %i steps ahead when the sandbox is replaced at any step', async (ahead) => {
    for (const name of ['a', 'b']) await writeFile(join(directory, name), Buffer.alloc(600_000));
    for (let n = 0; n < 5; n++) await writeFile(join(directory, `small${n}`), Buffer.alloc(200_000));
    const upload = (steps: FileSteps) =>
      uploadDirectory(steps, directory, '/workspace/d', () => 'id', new Progress(undefined), {});
    const whole = stepsUntil(ahead, Number.POSITIVE_INFINITY);
    await upload(whole.steps);
    expect(whole.done.length).toBeGreaterThan(6);
    for (let after = 1; after < whole.done.length; after++) {
      const { steps } = stepsUntil(ahead, after);
      await expect(upload(steps), `replaced after ${after} steps`).rejects.toMatchObject({ code: 'CONTAINER_LOST' });
    }
  });
});
