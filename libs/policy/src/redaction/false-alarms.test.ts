import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { feed } from '../../test-support/every-chunking.ts';
import { compileRedaction } from './compile.ts';

// Pieces of what bench/collect-logs.sh collects: builds, tests, listings, sums, traces. No secret stands in them.
test('takes nothing in ordinary build logs for a token, and changes none of their bytes', async () => {
  const logs = await readFile(join(import.meta.dirname, 'bench/build-logs.txt'));
  const redaction = compileRedaction({ hashKey: Buffer.alloc(32) });
  expect(feed(redaction.redactor(), [logs])).toEqual({
    output: logs.toString('latin1'),
    counts: {},
    blocked: undefined,
  });
});
