import { afterEach, describe, expect, test, vi } from 'vitest';
import { ApiRefusal } from './api-errors.ts';
import { type ApiObject, Informer, type InformerOptions } from './informer.ts';
import type { WatchEvent } from './watch-events.ts';

const object = (name: string, version: number, uid = `uid of ${name}`): ApiObject => ({
  metadata: { name, uid, resourceVersion: String(version) },
});
const present = (name: string, version: number, uid?: string): WatchEvent<ApiObject> => ({
  type: 'present',
  object: object(name, version, uid),
});
const gone = (name: string, version: number): WatchEvent<ApiObject> => ({
  type: 'gone',
  object: object(name, version),
});
const bookmark = (version: number): WatchEvent<ApiObject> => ({ type: 'bookmark', resourceVersion: String(version) });
const expired = new ApiRefusal(410, {});

type Step =
  | { list: ApiObject[]; version?: number }
  | { watch: WatchEvent<ApiObject>[]; fails?: Error }
  | { refuse: Error };

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** Opens an informer on a server that follows a script, and then keeps a watch open. */
async function stage(...script: Step[]) {
  const asked: string[] = [];
  const seen: string[] = [];
  const logged: string[] = [];
  let isIdle = false;
  const next = (call: string) => {
    asked.push(call);
    const step = script.shift();
    if (step !== undefined && 'refuse' in step) throw step.refuse;
    return step;
  };
  const options: InformerOptions<ApiObject> = {
    async list() {
      const step = next('list');
      if (step === undefined || !('list' in step)) throw new Error(`a list came before ${JSON.stringify(step)}`);
      return { items: step.list, resourceVersion: String(step.version ?? 1) };
    },
    async watch(version, signal) {
      const step = next(`watch ${version}`);
      if (step !== undefined && !('watch' in step)) throw new Error(`a watch came before ${JSON.stringify(step)}`);
      return (async function* () {
        yield* step?.watch ?? [];
        if (step?.fails) throw step.fails;
        isIdle = step === undefined;
        if (isIdle) await new Promise((_, reject) => signal.addEventListener('abort', reject));
      })();
    },
    onPresent: ({ metadata }) => seen.push(`+${metadata.name}${metadata.resourceVersion}`),
    onGone: ({ metadata }) => seen.push(`-${metadata.name}`),
    logger: {
      debug() {},
      error: ({ problem }: { problem: string }) => logged.push(problem),
      info: (event: string) => logged.push(event),
    } as never,
  };
  const informer = await Informer.open(options);
  opened.push(informer);
  await vi.waitFor(() => expect(isIdle).toBe(true), 5_000);
  const names = () => informer.values().map(({ metadata }) => metadata.name);
  return { informer, script, asked, seen, names, logged };
}

describe('Informer', () => {
  test('reports the objects of its list, and then every change', async () => {
    const { seen, names, asked } = await stage(
      { list: [object('a', 1), object('b', 1)], version: 4 },
      { watch: [present('a', 5), present('c', 6), gone('b', 7)] },
    );
    expect(seen).toEqual(['+a1', '+b1', '+a5', '+c6', '-b']);
    expect(names()).toEqual(['a', 'c']);
    expect(asked).toEqual(['list', 'watch 4', 'watch 7']);
  });

  test('resumes after the last bookmark when the connection breaks', async () => {
    const { asked } = await stage(
      { list: [], version: 1 },
      { watch: [present('a', 2), bookmark(9)], fails: new Error('broken') },
    );
    expect(asked).toEqual(['list', 'watch 1', 'watch 9']);
  });

  test.each<[string, Step]>([
    ['the reply', { refuse: expired }],
    ['an event', { watch: [], fails: expired }],
  ])('lists again after a 410 in %s, and reports what is gone', async (_case, step) => {
    const { seen, names, asked } = await stage({ list: [object('a', 1), object('b', 1)], version: 1 }, step, {
      list: [object('b', 1), object('c', 3)],
      version: 8,
    });
    expect(seen).toEqual(['+a1', '+b1', '-a', '+c3']);
    expect(names()).toEqual(['b', 'c']);
    expect(asked).toEqual(['list', 'watch 1', 'list', 'watch 8']);
  });

  test('empties its copy when a later list is empty', async () => {
    const { seen, names } = await stage({ list: [object('a', 1)] }, { refuse: expired }, { list: [] });
    expect([seen, names()]).toEqual([['+a1', '-a'], []]);
  });

  test('reports an object as gone before another one of its name', async () => {
    const { seen } = await stage(
      { list: [object('a', 1, 'first')] },
      { watch: [present('a', 2, 'second')] },
      { refuse: expired },
      { list: [object('a', 3, 'third')] },
    );
    expect(seen).toEqual(['+a1', '-a', '+a2', '-a', '+a3']);
  });

  test('reports a deletion once', async () => {
    const { seen } = await stage({ list: [object('a', 1)] }, { watch: [gone('a', 2), gone('a', 2)] });
    expect(seen).toEqual(['+a1', '-a']);
  });

  test('lists again after two failures in a row', async () => {
    const refuse = new ApiRefusal(504, { message: 'Too large resource version' });
    const { asked } = await stage({ list: [], version: 90 }, { refuse }, { refuse }, { list: [], version: 3 });
    expect(asked).toEqual(['list', 'watch 90', 'watch 90', 'list', 'watch 3']);
  });

  test('names its problem from the third failure until a watch is open', async () => {
    const refuse = new Error('connect ECONNREFUSED');
    const { informer, logged } = await stage({ list: [] }, { refuse }, { refuse }, { refuse }, { list: [] });
    expect([logged, informer.problem]).toEqual([['connect ECONNREFUSED', 'kubernetes.recovered'], undefined]);
  });

  test('lists again when its open watch is found to be silent', async () => {
    const { informer, script, seen, asked } = await stage({ list: [], version: 1 });
    script.push({ list: [object('a', 5)], version: 6 });
    informer.refresh();
    await vi.waitFor(() => expect(asked).toEqual(['list', 'watch 1', 'list', 'watch 6']), 5_000);
    expect([seen, informer.problem]).toEqual([['+a5'], undefined]);
  });

  test('rejects when the first list fails', async () => {
    await expect(stage({ refuse: new ApiRefusal(403, { message: 'no' }) })).rejects.toThrow('no');
  });
});
