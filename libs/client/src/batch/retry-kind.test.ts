import { ERRORS, type ErrorCode, OUTCOMES, ShellfleetError } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { retryKindOf } from './retry-kind.ts';

describe('retry kind of a result', () => {
  test('depends on the outcome alone, unless the outcome is `error`', () => {
    expect(Object.fromEntries(OUTCOMES.map((outcome) => [outcome, retryKindOf({ outcome })]))).toEqual({
      success: 'done',
      failure: 'command',
      timeout: 'command',
      cancellation: 'done',
      denial: 'done',
      blocked: 'command',
      lost: 'infra',
      error: 'infra',
    });
  });

  test('follows the grade, if there is one, for a task that ended by itself', () => {
    expect(retryKindOf({ outcome: 'success', passed: false })).toBe('command');
    expect(retryKindOf({ outcome: 'failure', passed: true })).toBe('done');
    expect(retryKindOf({ outcome: 'lost', passed: false })).toBe('infra');
  });

  test('is infra for an error that is retryable or ended the session', () => {
    const codes = Object.keys(ERRORS) as ErrorCode[];
    const retried = codes.filter((code) => {
      const error = new ShellfleetError(code, 'it failed').toJSON();
      return retryKindOf({ outcome: 'error', error }) === 'infra';
    });
    const ofTheSession = ['SESSION_CLOSED', 'SESSION_LOST', 'CONTAINER_LOST', 'SHELL_UNRESPONSIVE', 'LEASE_LOST'];
    expect(retried).toEqual(codes.filter((code) => ERRORS[code].retryable || ofTheSession.includes(code)));
    expect(retried).not.toContain('IMAGE_UNAVAILABLE');
  });

  test('is infra for an error that is marked retryable, whatever its code', () => {
    const error = new ShellfleetError('IMAGE_UNAVAILABLE', 'it is being loaded', {}, { retryable: true }).toJSON();
    expect(retryKindOf({ outcome: 'error', error })).toBe('infra');
  });
});
