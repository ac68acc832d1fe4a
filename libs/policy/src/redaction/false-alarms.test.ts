import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { feed } from '../../test-support/every-chunking.ts';
import { compileRedaction } from './compile.ts';

// Parts of the logs that bench/collect-logs.sh collects. None contains a secret.
test('finds no token in ordinary build logs, and changes none of their bytes', async () => {
  const logs = await readFile(join(import.meta.dirname, 'bench/build-logs.txt'));
  const redaction = compileRedaction({ hashKey: Buffer.alloc(32) });
  expect(feed(redaction.redactor(), [logs])).toEqual({
    output: logs.toString('latin1'),
    counts: {},
    blocked: undefined,
  });
});
