import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { whyGiveUp } from './end-session.ts';
import type { SessionParts } from './session-parts.ts';

const HOUR_MS = 3_600_000;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function idleSession(): SessionParts {
  const shell = { hasSandbox: true, death: undefined, live: { connected: true }, openedAt: Date.now() };
  return { shell, context: { spec: { idleTimeoutMs: HOUR_MS / 2, maxLifetimeMs: 24 * HOUR_MS } } } as never;
}

test('a session stays when the clock of its host jumps by more than its idle timeout', () => {
  const parts = idleSession();
  const activeAt = performance.now();
  vi.setSystemTime(Date.now() + HOUR_MS);
  expect(whyGiveUp(parts, activeAt)).toBeUndefined();
});

test('a session that is idle for as long as its timeout is given up, with the reason', () => {
  const parts = idleSession();
  const activeAt = performance.now();
  vi.advanceTimersByTime(HOUR_MS / 2);
  expect(whyGiveUp(parts, activeAt)).toBe(`it was idle for ${HOUR_MS / 2} ms`);
});
