import { describe, expect, test } from 'vitest';
import { measurePeers } from './peers.ts';

const amounts = { idle: { 'bash-pipe': 3, execa: 2 }, perSession: { 'bash-pipe': 2, execa: 1 } };

describe('the peers of the bench', () => {
  test('are measured in each round', async () => {
    const found = await measurePeers(amounts, 2, 2);
    expect(found.map(({ name }) => name)).toEqual(['bash-pipe', 'execa']);
    for (const { idle, commandsPerSecond } of found) {
      expect(idle['echo hi'].p50.rounds.length).toBe(2);
      expect(commandsPerSecond.median).toBeGreaterThan(0);
    }
  });
});
