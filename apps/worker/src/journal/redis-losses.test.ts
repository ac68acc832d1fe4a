import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { watchRedisLosses } from './redis-losses.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'sf-losses-'));
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
  rmSync(directory, { recursive: true });
});

const RETENTION_MS = 60_000;
const begin = () => writeFileSync(join(directory, '1.begun'), '');
/** Starts another process of the host, on a Redis with this identity. */
function start(runId: string | undefined) {
  const history = {
    identity: runId === undefined ? undefined : { runId, replicationId: 'r' },
    changes: 0,
    changedAt: undefined as number | undefined,
  };
  const { mayHaveHappened } = watchRedisLosses(directory, history, RETENTION_MS);
  return { history, mayHaveHappened };
}

describe('losses of Redis', () => {
  test('did not happen while all processes of the host saw the same Redis', () => {
    expect(start('a').mayHaveHappened()).toBe(false);
    begin();
    expect(start('a').mayHaveHappened()).toBe(false);
  });

  test('may have happened in another Redis, until the retention has passed', () => {
    start('a');
    begin();
    expect(start('b').mayHaveHappened()).toBe(true);
    vi.advanceTimersByTime(RETENTION_MS / 2);
    const later = start('b');
    expect(later.mayHaveHappened()).toBe(true);
    vi.advanceTimersByTime(RETENTION_MS / 2 + 1);
    expect(later.mayHaveHappened()).toBe(false);
  });

  test('may have happened in a Redis that was replaced or has no identity', () => {
    const { history, mayHaveHappened } = start('a');
    history.changedAt = Date.now();
    expect(mayHaveHappened()).toBe(true);
    expect(start(undefined).mayHaveHappened()).toBe(true);
  });

  test('may have happened when the host lost the file with the identity', () => {
    start('a');
    begin();
    rmSync(join(directory, 'redis.json'));
    expect(start('a').mayHaveHappened()).toBe(true);
  });
});
