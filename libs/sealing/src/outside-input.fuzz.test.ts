import { fuzzText, refusalOf } from '@shellfleet/protocol/test-support';
import { expect, test } from 'vitest';
import { createSealer, createSealKey } from './seal.ts';
import { sealPlace } from './seal-place.ts';

// What Redis and the environment give is opened, or refused by a ShellfleetError.

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
