import { fuzzText, refusalOf } from '@shellfleet/protocol/test-support';
import { expect, test } from 'vitest';
import { parseInboxMessage } from './inbox.ts';
import { describeRedis, parseRedisUrl } from './redis-address.ts';
import { createSealer, createSealKey } from './seal.ts';
import { sealPlace } from './seal-place.ts';

// What Redis and the environment give is parsed, or refused by a ShellfleetError.

const place = sealPlace('input', { namespace: 'ns', tenant: 't', session: 's' }, '01E');

test('a text is opened only as the sealed value that it is', () => {
  const sealer = createSealer([createSealKey()]);
  const sealed = sealer.seal('{"type":"restart"}', place);
  fuzzText([sealed], (text) => {
    const refusal = refusalOf(() => sealer.open(text, place));
    if (text === sealed) expect(refusal).toBeUndefined();
    // The first letters name the schema: others are taken for those of a newer one.
    else expect(['SEAL_KEY_UNKNOWN', 'PROTOCOL_MISMATCH']).toContain(refusal?.code);
  });
});

test('a seal key is 32 bytes, or refused', () => {
  fuzzText([createSealKey(), 'ab'.repeat(32)], (key) => {
    const refusal = refusalOf(() => createSealer([key]));
    if (refusal !== undefined) expect(refusal.code).toBe('SEAL_KEY_UNKNOWN');
    if (key.length > 10) expect(refusal?.message ?? '').not.toContain(key);
  });
});

test('the address of Redis is parsed, or refused by an error without its password', () => {
  const valid = [
    'redis://user:hunter2-hunter2@host:6379/1',
    'rediss://:hunter2-hunter2@[::1]:1?family=6',
    'redis+sentinel://a:1,b:2/name/3?sentinel-password=hunter2-hunter2',
    'redis+cluster://a,b:7000',
  ];
  fuzzText(valid, (text) => {
    const refusal = refusalOf(() => parseRedisUrl(text)) ?? refusalOf(() => describeRedis(text));
    expect(refusal?.message ?? '').not.toContain('hunter2-hunter2');
    if (refusal !== undefined) expect(refusal.code).toBe('REDIS_UNSUITABLE');
  });
});

test('a message of an inbox is a notice, an answer or nothing, whatever it holds', () => {
  fuzzText(['e tenant:session entry 1-0 {}', 'a id sealed'], (text) => {
    const message = parseInboxMessage(text);
    if (message === undefined) return;
    for (const value of Object.values(message)) expect(typeof value).toBe('string');
    const { type, ...rest } = message;
    if (type === 'notice') expect(Object.keys(rest)).toEqual(['tenant', 'session', 'entryId', 'event', 'result']);
    else expect(Object.keys(rest)).toEqual(['id', 'sealed']);
  });
});
