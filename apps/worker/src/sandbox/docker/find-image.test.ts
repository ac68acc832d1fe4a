import { describe, expect, test } from 'vitest';
import type { Engine } from './engine.ts';
import { ImageLookup } from './find-image.ts';

/** Returns a lookup in an engine whose images are in `digests`, and the names that the engine was asked for. */
function startLookup(digests: Record<string, string>) {
  const asked: string[] = [];
  const first = Promise.withResolvers<void>();
  const inspect = async (name: string) => {
    const Id = digests[name];
    if (asked.push(name) === 1) await first.promise;
    if (Id === undefined) throw Object.assign(new Error('No such image'), { statusCode: 404 });
    return { Id };
  };
  const docker = { getImage: (name: string) => ({ inspect: () => inspect(name) }) };
  const engine = { call: (call: (with_: typeof docker) => unknown) => call(docker) } as unknown as Engine;
  return { asked, first, lookup: new ImageLookup(engine) };
}

describe('the lookup of an image', () => {
  test('is shared by those that ask during another, and begins after they asked', async () => {
    const digests = { a: 'sha256:1' };
    const { asked, first, lookup } = startLookup(digests);
    const before = lookup.find(['a']);
    digests.a = 'sha256:2';
    const during = Array.from({ length: 9 }, () => lookup.find(['a']));
    first.resolve();
    expect((await before).digest).toBe('sha256:1');
    expect(new Set((await Promise.all(during)).map(({ digest }) => digest))).toEqual(new Set(['sha256:2']));
    expect(asked).toEqual(['a', 'a']);
  });

  test('finds the first of the names that the engine has, or none', async () => {
    const { first, lookup } = startLookup({ b: 'sha256:b' });
    first.resolve();
    expect(await lookup.find(['a', 'b'])).toMatchObject({ name: 'b', digest: 'sha256:b' });
    await expect(lookup.find(['a'])).rejects.toThrow('a');
  });
});
