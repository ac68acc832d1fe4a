import { ERRORS, type ErrorCode, OUTCOMES, ShellfleetError } from '@shellfleet/protocol';
import { expect, test } from 'vitest';
import { retryKindOf } from './retry-kind.ts';

test('each outcome but an error takes retries by its name', () => {
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

test('an error is retried when it is retryable or took the session with it', () => {
  const codes = Object.keys(ERRORS) as ErrorCode[];
  const retried = codes.filter((code) => {
    const error = new ShellfleetError(code, 'it failed').toJSON();
    return retryKindOf({ outcome: 'error', error }) === 'infra';
  });
  const ofTheSession = ['SESSION_CLOSED', 'SESSION_LOST', 'CONTAINER_LOST', 'SHELL_UNRESPONSIVE', 'LEASE_LOST'];
  expect(retried).toEqual(codes.filter((code) => ERRORS[code].retryable || ofTheSession.includes(code)));
  expect(retried).not.toContain('IMAGE_UNAVAILABLE');
});

test('an error that says that it is retryable is retried, whatever its code', () => {
  const error = new ShellfleetError('IMAGE_UNAVAILABLE', 'it is being loaded', {}, { retryable: true }).toJSON();
  expect(retryKindOf({ outcome: 'error', error })).toBe('infra');
});
