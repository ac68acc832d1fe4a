import { describe, expect, test } from 'vitest';
import { ManifestKeeper } from './describe-batch.ts';
import { type BatchManifest, manifestSchema } from './manifest.ts';
import type { TaskResult } from './task-result.ts';

describe('a manifest', () => {
  test('lists no more images than can be written again and again', async () => {
    const written: BatchManifest[] = [];
    const keeper = new ManifestKeeper(manifestSchema.parse({ name: 'b' }), async (manifest) => {
      written.push(manifest);
    });
    for (let n = 0; n < 10_100; n++) {
      const result = { setup: [], results: [{ imageDigest: `sha256:${n}` }] } as unknown as TaskResult;
      keeper.noteImages(`image-${n}`, result);
    }
    await keeper[Symbol.asyncDispose]();
    expect(Object.keys(written[0]?.images ?? {}).length).toBe(10_000);
  });
});
