import { describe, expect, test } from 'vitest';
import { StartsUnderWay } from './starts-under-way.ts';

const entry = { tenant: 't', session: 's', generation: 'g', entryId: 'e' };
const isTrue = (found: boolean) => found;

/** Watches whether all starts that are under way now have ended. */
function watch(starts: StartsUnderWay): { settled: boolean } {
  const seen = { settled: false };
  void starts.settled().then(() => {
    seen.settled = true;
  });
  return seen;
}
const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('a revocation', () => {
  test('waits for the end of a start that found an approval (STARTS-1)', async () => {
    const starts = new StartsUnderWay();
    const [found, started] = [Promise.withResolvers<boolean>(), Promise.withResolvers<void>()];
    const start = starts.during(entry, async () => {
      await starts.look(entry, () => found.promise, isTrue);
      await started.promise;
    });
    const [whileLooking] = [watch(starts)];
    await turn();
    expect(whileLooking.settled).toBe(false);
    found.resolve(true);
    const whileStarting = watch(starts);
    await turn();
    expect([whileLooking.settled, whileStarting.settled]).toEqual([false, false]);
    started.resolve();
    await start;
    await turn();
    expect([whileLooking.settled, whileStarting.settled]).toEqual([true, true]);
  });

  test('does not wait for a start that found no approval (STARTS-1)', async () => {
    const starts = new StartsUnderWay();
    const held = Promise.withResolvers<void>();
    const start = starts.during(entry, async () => {
      await starts.look(entry, async () => false, isTrue);
      await held.promise;
    });
    await turn();
    const seen = watch(starts);
    await turn();
    expect(seen.settled).toBe(true);
    held.resolve();
    await start;
  });

  test('does not wait for a start that has failed', async () => {
    const starts = new StartsUnderWay();
    const failing = async () => {
      throw new Error('no');
    };
    await expect(starts.during(entry, () => starts.look(entry, failing, isTrue))).rejects.toThrow('no');
    const failsLater = async () => {
      await starts.look(entry, async () => true, isTrue);
      await failing();
    };
    await expect(starts.during(entry, failsLater)).rejects.toThrow('no');
    await starts.settled();
  });

  test('waits neither for later starts (STARTS-2) nor for searches without a start', async () => {
    const starts = new StartsUnderWay();
    const seen = watch(starts);
    const never = Promise.withResolvers<boolean>();
    void starts.during(entry, () => starts.look(entry, () => never.promise, isTrue));
    void starts.look({ ...entry, entryId: 'other' }, () => never.promise, isTrue);
    await turn();
    expect(seen.settled).toBe(true);
  });
});
