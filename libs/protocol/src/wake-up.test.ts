import { expect, test } from 'vitest';
import type { z } from 'zod';
import { encodeWakeUp, parseWakeUp, type wakeUpSchema } from './wake-up.ts';

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
