import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { setClientStage } from '../support/client-stage.ts';

// Closes a session of a batch after the next driver has found it open, and before that driver opens it.

/** Called after a driver has read which commands an earlier driver began. */
let onSeen = async () => {};
vi.mock('@shellfleet/mailbox', async (load) => {
  const mailbox = await load<typeof import('@shellfleet/mailbox')>();
  return {
    ...mailbox,
    async readIdempotencyKey(...args: Parameters<typeof mailbox.readIdempotencyKey>) {
      const found = await mailbox.readIdempotencyKey(...args);
      await onSeen();
      return found;
    },
  };
});

describe('a task of a batch', () => {
  test('begins again with its first script if its session closes while a driver resumes it', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'shellfleet-batch-close-'));
    await using stage = await setClientStage();
    await stage.startHost();
    const fleet = await stage.connect();
    const ran = join(directory, 'ran');
    const task = { id: 'a', script: [`echo 1 >> ${ran}`, `echo 2 >> ${ran}`] };
    // This driver ends before it submits the second script.
    const reached = Promise.withResolvers<string>();
    let submits = 0;
    const dying = await stage.connect({
      interceptors: [
        async (input, next) => {
          if (++submits < 2) return next(input);
          reached.resolve(input.sessionId);
          return new Promise(() => {});
        },
      ],
    });
    void dying
      .batch([task], { name: 'window' })
      .run()
      .catch(() => {});
    const sessionId = await reached.promise;
    await dying.close();
    let closing: Promise<unknown> | undefined;
    onSeen = async () => {
      closing ??= fleet.attach(sessionId).then((session) => session?.close());
      await closing;
    };
    const results = await Array.fromAsync(fleet.batch([task], { name: 'window' }));
    expect(results).toMatchObject([{ outcome: 'success', attempts: 2 }]);
    expect(await readFile(ran, 'utf8')).toBe('1\n1\n2\n');
    await rm(directory, { recursive: true });
  });
});
