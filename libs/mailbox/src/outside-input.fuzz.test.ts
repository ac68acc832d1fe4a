import { fuzzText } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { parseInboxMessage } from './producer/inbox.ts';

describe('parsing a message of an inbox', () => {
  test('returns a notice, an answer or nothing for any text', () => {
    fuzzText(['e tenant:session entry 1-0 {}', 'a id sealed'], (text) => {
      const message = parseInboxMessage(text);
      if (message === undefined) return;
      for (const value of Object.values(message)) expect(typeof value).toBe('string');
      const { type, ...rest } = message;
      if (type === 'notice') expect(Object.keys(rest)).toEqual(['tenant', 'session', 'entryId', 'event', 'result']);
      else expect(Object.keys(rest)).toEqual(['id', 'sealed']);
    });
  });
});
