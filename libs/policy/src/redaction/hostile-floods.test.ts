import { describe, expect, test } from 'vitest';
import { cutAt, feed, feedRestarted } from '../../test-support/every-chunking.ts';
import { FLOODED_SECRET, HOSTILE_FLOODS } from '../../test-support/hostile-floods.ts';
import { seededRandom } from '../../test-support/token-samples.ts';
import { compileRedaction } from './compile.ts';

const BYTES = 4_000;
const TYPES = ['email', 'credit_card', 'ip', 'mac_address', 'url'];
const redaction = compileRedaction({
  rules: TYPES.map((type) => ({ type, strategy: 'mask' })),
  secrets: { TOKEN: FLOODED_SECRET },
  hashKey: Buffer.alloc(32),
});

describe('redaction of a hostile flood', () => {
  test.each(Object.entries(HOSTILE_FLOODS))('is the same in any pieces and after a restart: %s', (_name, text) => {
    const input = Buffer.alloc(BYTES, Buffer.from(text, 'latin1'));
    const whole = feed(redaction.redactor(), [input]);
    const random = seededRandom(3);
    for (const pieces of [2, 10, 100]) {
      const offsets = Array.from({ length: pieces }, () => random(BYTES));
      expect(feed(redaction.redactor(), cutAt(input, offsets)), `cut at ${offsets}`).toEqual(whole);
      expect(feedRestarted(redaction, input, offsets[0]!), `restarted at ${offsets[0]}`).toEqual(whole);
    }
  });
});
