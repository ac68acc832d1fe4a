import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { runProgram } from './run-program.ts';

describe('runProgram', () => {
  test('ends an interrupted program with its children, even if it waits for them', async () => {
    const interrupted = new AbortController();
    const script = `trap 'wait; exit 1' TERM; sh -c 'echo started; exec sleep 60' & wait`;
    const running = runProgram('sh', ['-c', script], {
      signal: interrupted.signal,
      onLine: () => interrupted.abort(new Error('it is not needed any more')),
    });
    const ended = await Promise.race([running.catch((error: Error) => error.message), delay(10_000, 'goes on')]);
    expect(ended).toBe('it is not needed any more');
  });
});
