import { fuzz, fuzzText, refusalOf } from '@shellfleet/protocol/test-support';
import { expect, test } from 'vitest';
import { parseInboxEntry } from './inbox.ts';
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

test('the fields of an inbox entry are a notice or an answer, whatever they hold', () => {
  const valid = [
    ['t', 'tenant', 's', 'session', 'e', 'entry', 'v', '1-0', 'r', '{}'],
    ['a', 'id', 'd', 'sealed'],
  ];
  fuzz(valid, (value) => {
    const fields = Array.isArray(value) ? value.filter((field) => typeof field === 'string') : [];
    const entry = parseInboxEntry(fields);
    const texts = Object.values(entry.type === 'notice' ? entry.notice : { id: entry.id, sealed: entry.sealed });
    for (const text of texts) expect(typeof text).toBe('string');
  });
});
