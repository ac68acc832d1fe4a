import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { feed } from '../../test-support/every-chunking.ts';
import { compileRedaction } from './compile.ts';

describe('redaction of ordinary build logs', () => {
  // Parts of the logs that bench/collect-logs.sh collects. None contains a secret.
  test('finds no token, and changes no byte', async () => {
    const logs = await readFile(join(import.meta.dirname, 'bench/build-logs.txt'));
    const redaction = compileRedaction({ hashKey: Buffer.alloc(32) });
    expect(feed(redaction.redactor(), [logs])).toEqual({
      output: logs.toString('latin1'),
      counts: {},
      blocked: undefined,
    });
  });
});
