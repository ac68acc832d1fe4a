import { fuzzText, refusalOf } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { createSealer, createSealKey } from './seal.ts';
import { sealPlace } from './seal-place.ts';

const place = sealPlace('input', { namespace: 'ns', tenant: 't', session: 's' }, '01E');

describe('sealing, for any text', () => {
  test('opens only sealed values, and refuses others with its own errors', () => {
    const sealer = createSealer([createSealKey()]);
    const sealed = sealer.seal('{"type":"restart"}', place);
    fuzzText([sealed], (text) => {
      const refusal = refusalOf(() => sealer.open(text, place));
      if (text === sealed) expect(refusal).toBeUndefined();
      // The first characters are the schema version. Other characters may be read as a newer version.
      else expect(['SEAL_KEY_UNKNOWN', 'PROTOCOL_MISMATCH']).toContain(refusal?.code);
    });
  });

  test('accepts a key of 32 bytes, and refuses others', () => {
    fuzzText([createSealKey(), 'ab'.repeat(32)], (key) => {
      const refusal = refusalOf(() => createSealer([key]));
      if (refusal !== undefined) expect(refusal.code).toBe('SEAL_KEY_UNKNOWN');
      if (key.length > 10) expect(refusal?.message ?? '').not.toContain(key);
    });
  });
});
