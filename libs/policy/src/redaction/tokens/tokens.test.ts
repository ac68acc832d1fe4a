import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cutAt, feed, feedRestarted } from '../../../test-support/every-chunking.ts';
import { seededRandom, tokenSamples } from '../../../test-support/token-samples.ts';
import { compileRedaction } from '../compile.ts';
import { CLOUDS } from './kinds/clouds.ts';
import { CODE_HOSTS } from './kinds/code-hosts.ts';
import { GENERAL_TOKEN_KINDS } from './kinds/general.ts';
import { SERVICES } from './kinds/services.ts';
import { TOKEN_TYPES } from './tokens.ts';

const redaction = compileRedaction({ hashKey: Buffer.alloc(32) });
const samples = tokenSamples(seededRandom(1));

describe('the list of token types', () => {
  test('has at least 40 types, and a sample of each', () => {
    expect([...TOKEN_TYPES].sort()).toEqual([...new Set(samples.map(({ type }) => type))].sort());
    expect(TOKEN_TYPES.size).toBeGreaterThanOrEqual(40);
  });

  test('is the list of docs/output.md', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../../../docs/output.md'), 'utf8');
    const list = /The kinds of tokens: ([^.]+)\./.exec(page)?.[1] ?? '';
    expect(list.match(/[a-z_]+/g)).toEqual([...TOKEN_TYPES].sort());
  });
});

describe.each(samples.map((sample) => [sample.type, sample] as const))('the token type %s', (type, { text, token }) => {
  const line = `$ export IT="${text}" # done\n`;
  const expected = {
    output: line.replace(token, `[REDACTED_${type.toUpperCase()}]`),
    counts: { [type]: 1 },
    blocked: undefined,
  };
  const bytes = Buffer.from(line);

  test('is replaced, and no other text with it, for every split and every restart', () => {
    expect(feed(redaction.redactor(), [bytes])).toEqual(expected);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(feed(redaction.redactor(), cutAt(bytes, [at])), `split at ${at}`).toEqual(expected);
      expect(feedRestarted(redaction, bytes, at), `restarted at ${at}`).toEqual(expected);
    }
  });
});

describe('redaction of tokens', () => {
  test('finds at least 99 % of tokens of known formats in random surroundings', () => {
    const surroundings = [
      ['', '\n'],
      ['token: ', '\n'],
      ["'", "'"],
      ['(', ')'],
      ['\u8054', '\u8054'],
      ['a=', '&b=c'],
      ['\t', ' ok'],
      ['["', '"]'],
    ] as const;
    let planted = 0;
    const missed: string[] = [];
    for (let seed = 0; seed < 100; seed += 1) {
      for (const { type, text, token } of tokenSamples(seededRandom(seed))) {
        const [before, behind] = surroundings[planted % surroundings.length]!;
        planted += 1;
        if (redaction.text(before + text + behind).text.includes(token))
          missed.push(`${type} ${before + text + behind}`);
      }
    }
    expect({ share: missed.length / planted <= 0.01, missed: missed.slice(0, 20) }).toEqual({
      share: true,
      missed: [],
    });
  });

  const ANCHORS_IN_EITHER_CASE = [...CODE_HOSTS, ...CLOUDS, ...SERVICES, ...GENERAL_TOKEN_KINDS]
    .filter(({ fold }) => fold)
    .flatMap(({ type, anchors }) => anchors.map((anchor) => ({ type, anchor })));

  test.each(ANCHORS_IN_EITHER_CASE)('finds $type with $anchor in upper and in lower case', ({ type, anchor }) => {
    const sample = samples.find((one) => one.type === type && one.text.toLowerCase().includes(anchor.toLowerCase()));
    // One sample covers one anchor of its kind. The same code finds the other anchors.
    if (sample === undefined) return;
    const at = sample.text.toLowerCase().indexOf(anchor.toLowerCase());
    for (const written of [anchor.toUpperCase(), anchor.toLowerCase()]) {
      const text = sample.text.slice(0, at) + written + sample.text.slice(at + anchor.length);
      expect(redaction.text(text).counts, text).toEqual({ [type]: 1 });
    }
  });

  test('finds a Clojars token in lower case, as people write it', () => {
    expect(redaction.text(`clojars_${'0123456789abcdef'.repeat(4).slice(4)}`).text).toBe('[REDACTED_CLOJARS_TOKEN]');
  });

  const letters = (count: number): string => 'aB3dE6gH'.repeat(count / 8);

  test.each([
    ['onepassword_token', `ops_eyJ${letters(2000)}`, '[REDACTED_ONEPASSWORD_TOKEN]'],
    ['jwt', `eyJ${letters(4000)}.eyJ${letters(8000)}.${letters(4000)}`, '[REDACTED_JWT]'],
    ['authorization', `Authorization: Bearer ${letters(4000)}`, 'Authorization: Bearer [REDACTED_AUTHORIZATION]'],
    ['pypi_token', `pypi-AgE${letters(496)}`, '[REDACTED_PYPI_TOKEN]'],
    ['url_password', `https://me:${letters(128)}@host`, 'https://me:[REDACTED_URL_PASSWORD]@host'],
  ])('replaces a %s of the greatest length up to its end', (_type, text, output) => {
    expect(redaction.text(`${text}\n`).text).toBe(`${output}\n`);
  });
});
