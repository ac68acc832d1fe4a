import { describe, expect, test } from 'vitest';
import { SharedRounds } from './shared-rounds.ts';

/** Rounds that end when the test says so. */
function startRounds() {
  const begun: (PromiseWithResolvers<void> & { key: string })[] = [];
  const rounds = new SharedRounds((key) => {
    const round = { ...Promise.withResolvers<void>(), key };
    begun.push(round);
    return round.promise;
  });
  return { begun, rounds };
}

describe('shared rounds', () => {
  test('let calls during a round share the next one', async () => {
    const { begun, rounds } = startRounds();
    const first = rounds.run('a');
    const others = [rounds.run('a'), rounds.run('a'), rounds.run('a')];
    expect(begun).toHaveLength(1);
    begun[0]?.resolve();
    await first;
    await expect.poll(() => begun.length).toBe(2);
    begun[1]?.resolve();
    await Promise.all(others);
    expect(begun).toHaveLength(2);
  });

  test('reject only the callers of a round that fails', async () => {
    const { begun, rounds } = startRounds();
    const first = rounds.run('a');
    const second = rounds.run('a');
    begun[0]?.reject(new Error('no'));
    await expect(first).rejects.toThrow('no');
    await expect.poll(() => begun.length).toBe(2);
    begun[1]?.resolve();
    await second;
  });

  test('run independently for each key, and begin a new round for later calls', async () => {
    const { begun, rounds } = startRounds();
    const both = [rounds.run('a'), rounds.run('b')];
    expect(begun.map(({ key }) => key)).toEqual(['a', 'b']);
    for (const round of begun) round.resolve();
    await Promise.all(both);
    void rounds.run('a');
    expect(begun).toHaveLength(3);
  });
});
