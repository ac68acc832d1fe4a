import { createHash, randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { FleetInspector } from '../support/inspect-fleet.ts';
import { endInspectedFleet, startInspectedFleet } from '../support/inspected-fleet.ts';
import type { TestFleet } from '../support/start-fleet.ts';

// Promise: when the sandbox is lost during an upload, the file is whole, or the call fails.

const UPLOADS = 6;
const FILE_BYTES = 24 << 20;

let stack: TestFleet;
let inspect: FleetInspector;
beforeAll(async () => {
  ({ stack, inspect } = await startInspectedFleet());
});
afterAll(() => endInspectedFleet(stack, inspect));

describe('an upload', () => {
  test('leaves the whole file or none when its container is removed at any time', async () => {
    const data = randomBytes(FILE_BYTES);
    const wanted = createHash('md5').update(data).digest('hex');
    const session = await stack.fleet.session('upload');
    let failed = 0;
    for (let index = 0; index < UPLOADS; index++) {
      await session.run('true');
      const container = await inspect.container('upload');
      const upload = session.files.write('/workspace/target.bin', data).then(
        () => 'whole',
        ({ code }) => code,
      );
      // The delays differ, so that the container is removed at different points of the upload.
      await delay(60 + 15 * index);
      await container.remove({ force: true });
      const end = await upload;
      if (end !== 'whole') failed += 1;
      expect(['whole', 'CONTAINER_LOST']).toContain(end);
      // The fresh container has no file if the upload was complete before the removal.
      const found = await session.run('md5sum < /workspace/target.bin 2> /dev/null | cut -c1-32');
      expect(['', `${wanted}\n`]).toContain(found.stdout);
      await session.run('rm -f /workspace/target.bin');
    }
    console.info(`${failed} of ${UPLOADS} uploads failed`);
  });
});
