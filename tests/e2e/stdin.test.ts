// A command's stdin: none, given with it, streamed by its submitter, or held open and written to by anybody.
import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectedResult } from '../support/expected-result.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';

const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex');

describe.each(['socket', 'attach'] as const)('over %s', (transport) => {
  let stack: TestFleet;
  beforeAll(async () => {
    stack = await startFleet({ transport });
  });
  afterAll(async () => {
    await stack?.[Symbol.asyncDispose]();
  });

  test('fifty megabytes are streamed through a command', async () => {
    const session = await stack.fleet.session('large');
    const bytes = randomBytes(50_000_000);
    const result = await session.run('md5sum | cut -c1-32', { stdin: bytes });
    expect(result).toEqual(expectedResult('large', { stdout: `${md5(bytes)}\n` }));
  });
});
