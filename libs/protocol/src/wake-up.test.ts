import { describe, expect, test } from 'vitest';
import { LIMITS } from './limits.ts';
import { encodeWakeUp, parseWakeUp } from './wake-up.ts';

const session = { tenant: 'acme', session: 'build.1' };
const entry = {
  id: '01J9ZQ4W7YV1ZQ4W7YV1ZQ4W7Y',
  payload: '1.key.sealed',
  kind: 'command',
  inbox: 'inbox-1',
  acceptedAt: '1700000000000',
  retry: 'never',
  startedAt: '1700000000001',
  fence: '7',
} as const;

describe('a wake-up', () => {
  test.each<Parameters<typeof encodeWakeUp>[0]>([
    { type: 'session', ...session },
    { type: 'session', ...session, entry },
    { type: 'session', ...session, entry: { ...entry, kind: 'restart', startedAt: '', retry: 'idempotent' } },
    { type: 'input', ...session },
    { type: 'terminal', ...session, terminal: '01J9ZQ4W7YV1ZQ4W7YV1ZQ4W7Y' },
    { type: 'calls' },
    { type: 'sessions', placementClass: 'docker' },
    { type: 'sessions', placementClass: 'x'.repeat(LIMITS.placementClassChars) },
    { type: 'tool', name: 'search_web' },
  ])('of type $type has the same fields after encoding and parsing', (wakeUp) => {
    expect(parseWakeUp(encodeWakeUp(wakeUp))).toEqual(wakeUp);
  });

  test.each([
    '',
    'calls',
    '1',
    'null',
    '{"type":"session"}',
    '{"type":"session","tenant":"acme","session":"a:b"}',
    '{"type":"terminal","tenant":"acme","session":"s","terminal":"x"}',
    '{"type":"sessions","placementClass":7}',
    '{"type":"reboot"}',
  ])('is not parsed from another message: %s', (message) => {
    expect(parseWakeUp(message)).toBeUndefined();
  });

  test('is dropped when a field of its entry is not valid', () => {
    for (const name of Object.keys(entry))
      for (const value of ['x'.repeat(100_000), 7, null, {}, ['a'], undefined]) {
        const message = JSON.stringify({ type: 'session', ...session, entry: { ...entry, [name]: value } });
        expect(parseWakeUp(message), message).toBeUndefined();
      }
    for (const name of ['id', 'kind', 'acceptedAt', 'retry', 'fence'])
      for (const value of ['', ' ', '01j9', 'a:b', '-1', '12345678901234567']) {
        const message = JSON.stringify({ type: 'session', ...session, entry: { ...entry, [name]: value } });
        expect(parseWakeUp(message), message).toBeUndefined();
      }
  });

  test('is dropped when its tenant, session or entry has an invalid form', () => {
    const bad = ['', ' ', 'x'.repeat(100_000), 'a:b', 7, null, {}, ['a'], undefined];
    const sessions = Object.keys(session).flatMap((name) => bad.map((value) => ({ ...session, [name]: value })));
    const withEntry = sessions.map((fields) => ({ ...fields, entry }));
    for (const fields of [...sessions, ...withEntry, { ...session, entry: [] }]) {
      const message = JSON.stringify({ type: 'session', ...fields });
      expect(parseWakeUp(message), message).toBeUndefined();
    }
  });

  test('loses unknown fields', () => {
    const message = { type: 'session', ...session, more: 1, entry: { ...entry, more: 1 } };
    expect(parseWakeUp(JSON.stringify(message))).toEqual({ type: 'session', ...session, entry });
  });
});
