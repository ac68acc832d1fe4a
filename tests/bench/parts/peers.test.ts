import { describe, expect, test } from 'vitest';
import { measurePeers } from './peers.ts';

const amounts = {
  idle: { 'bash-pipe': 3, execa: 2, langchain: 1, 'swe-rex': 1 },
  perSession: { 'bash-pipe': 2, execa: 1, langchain: 1, 'swe-rex': 1 },
};

describe('the peers of the bench', () => {
  test('are measured with those of Node, and every other one is measured or reported', async () => {
    const missing: string[] = [];
    const found = await measurePeers(amounts, 2, 2, false, (line) => missing.push(line));
    const names = found.map(({ name }) => name);
    expect(names.slice(0, 2)).toEqual(['bash-pipe', 'execa']);
    expect(names.length + missing.length).toBe(4);
    for (const { idle, commandsPerSecond } of found) {
      expect(idle['echo hi'].p50.rounds.length).toBe(2);
      expect(commandsPerSecond.median).toBeGreaterThan(0);
    }
  });
});
