import { expect, test } from 'vitest';
import type { z } from 'zod';
import { encodeWakeUp, parseWakeUp, wakeUpSchema } from './wake-up.ts';

const session = { tenant: 'acme', session: 'build.1' };

test.each<z.input<typeof wakeUpSchema>>([
  { type: 'session', ...session },
  { type: 'input', ...session },
  { type: 'terminal', ...session, terminal: '01J9ZQ4W7YV1ZQ4W7YV1ZQ4W7Y' },
  { type: 'calls' },
  { type: 'sessions', placementClass: 'docker' },
  { type: 'tool', name: 'search_web' },
])('a wake-up of type $type is parsed as it was encoded', (wakeUp) => {
  expect(parseWakeUp(encodeWakeUp(wakeUp))).toEqual(wakeUp);
});

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

test('an entry in a wake-up is accepted exactly as the schema accepts it, with its shortcut and without', () => {
  const others = { ...entry, kind: 'restart', startedAt: '', retry: 'idempotent', more: 'ignored' };
  const bad = ['', ' ', 'x'.repeat(100_000), '01j9', 'a:b', '-1', '12345678901234567', 7, null, {}, ['a'], undefined];
  const sessions = Object.keys(session).flatMap((name) => bad.map((value) => ({ ...session, [name]: value })));
  const entries = Object.entries(others).flatMap(([name, value]) =>
    [value, ...bad].map((instead) => ({ ...session, entry: { ...entry, [name]: instead } })),
  );
  const plain = { ...session, entry };
  for (const fields of [plain, session, { ...plain, more: 1 }, { ...plain, entry: [] }, ...sessions, ...entries]) {
    const message = JSON.stringify({ type: 'session', ...fields });
    expect(parseWakeUp(message), message).toEqual(wakeUpSchema.safeParse(JSON.parse(message)).data);
  }
  expect(parseWakeUp(JSON.stringify({ type: 'session', ...plain }))).toEqual({ type: 'session', ...plain });
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
])('a message that is none is dropped: %s', (message) => {
  expect(parseWakeUp(message)).toBeUndefined();
});
