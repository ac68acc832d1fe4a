import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { whyGiveUp } from './end-session.ts';
import type { SessionParts } from './session-parts.ts';

const HOUR_MS = 3_600_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function idleSession(mostIdleMs = Number.POSITIVE_INFINITY): SessionParts {
  const shell = { sandbox: { createdAt: Date.now() }, death: undefined, live: { connected: true } };
  const spec = { idleTimeoutMs: HOUR_MS / 2, maxLifetimeMs: 24 * HOUR_MS };
  const owner = { keys: { tenant: 't' } };
  const context = { spec, owner, mostIdleMs: (tenant: string) => (tenant === 't' ? mostIdleMs : 0) };
  return { shell, context } as never;
}

describe('an idle session', () => {
  test('stays when the wall clock jumps by more than its idle timeout', () => {
    const parts = idleSession();
    const activeAt = performance.now();
    vi.setSystemTime(Date.now() + HOUR_MS);
    expect(whyGiveUp(parts, activeAt)).toBeUndefined();
  });

  test('is given up with the reason after its idle timeout', () => {
    const parts = idleSession();
    const activeAt = performance.now();
    vi.advanceTimersByTime(HOUR_MS / 2);
    expect(whyGiveUp(parts, activeAt)).toBe(`it was idle for ${HOUR_MS / 2} ms`);
  });

  test('is given up after the longest idle time of its tenant, if that is shorter', () => {
    const parts = idleSession(1_000);
    const activeAt = performance.now();
    vi.advanceTimersByTime(999);
    expect(whyGiveUp(parts, activeAt)).toBeUndefined();
    vi.advanceTimersByTime(1);
    expect(whyGiveUp(parts, activeAt)).toBe('it was idle for 1000 ms');
  });
});
