import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSealer, createSealKey } from './seal.ts';
import { type SealPlace, sealPlace } from './seal-place.ts';

const place = sealPlace('input', { namespace: 'ns', tenant: 't', session: 's' }, '01E');
const key = createSealKey();
const sealer = createSealer([key]);
const placeOf = fc.record({
  namespace: fc.string(),
  tenant: fc.string(),
  session: fc.string(),
  entry: fc.string(),
  kind: fc.constantFrom('spec', 'payload', 'reply'),
  beside: fc.array(fc.string()),
});

describe('a sealed value', () => {
  test('opens in its place, whatever it contains', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), placeOf, (plain, where) => {
        expect(sealer.open(sealer.seal(plain, where as unknown as SealPlace), where as unknown as SealPlace)).toBe(
          plain,
        );
      }),
    );
  });

  test('does not open in another place', () => {
    const changes: Partial<SealPlace>[] = [
      { namespace: 'ns2' },
      { tenant: 't2' },
      { session: 's2' },
      { entry: '01F' },
      { entry: '' },
      { kind: 'reply' },
      { beside: ['1'] },
      { tenant: 't","s', session: '' },
    ];
    const sealed = sealer.seal('plain', place);
    for (const change of changes) expect(() => sealer.open(sealed, { ...place, ...change })).toThrow('does not open');
  });

  test('does not open after a change of any bit', () => {
    const sealed = Buffer.from(sealer.seal('a secret', place));
    for (let bit = 0; bit < sealed.byteLength * 8; bit += 1) {
      const changed = Buffer.from(sealed);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(() => sealer.open(changed.toString('latin1'), place), `bit ${bit}`).toThrow();
    }
  });

  test('does not open after a cut or an addition', () => {
    const sealed = sealer.seal('a secret', place);
    for (let length = 0; length < sealed.length; length += 1)
      expect(() => sealer.open(sealed.slice(0, length), place), `first ${length}`).toThrow();
    for (const more of ['=', '\n', ' ', '.', '.x', 'A', 'AAAA'])
      expect(() => sealer.open(sealed + more, place)).toThrow();
  });

  test('reveals nothing of its plain text, and differs each time', () => {
    const [one, two] = [sealer.seal('hunter2', place), sealer.seal('hunter2', place)];
    expect(one).not.toBe(two);
    expect(one).not.toContain('hunter2');
  });

  test('opens with any of the keys, and names the missing key in the error', () => {
    const [older, newer] = [createSealKey(), createSealKey()];
    const sealed = createSealer([older]).seal('plain', place);
    expect(createSealer([newer, older]).open(sealed, place)).toBe('plain');
    expect(() => createSealer([newer]).open(sealed, place)).toThrow(sealed.split('.')[1]);
    expect(() => createSealer([older]).open(createSealer([newer, older]).seal('x', place), place)).toThrow(
      'does not have',
    );
  });

  test('as bytes opens in its place alone, and not after a change', () => {
    const where = sealPlace('reply', { namespace: 'ns', tenant: 't', session: 's' }, '01E');
    const sealed = sealer.sealRaw([Buffer.from('{}\n'), Buffer.alloc(0), Buffer.from([0, 46, 255])], where);
    expect(sealer.openRaw(sealed, where)).toEqual(Buffer.from([123, 125, 10, 0, 46, 255]));
    expect(() => sealer.openRaw(sealed, place)).toThrow('does not open');
    expect(() => createSealer([createSealKey()]).openRaw(sealed, where)).toThrow('does not have');
    expect(() => sealer.openRaw(Buffer.concat([Buffer.from('9'), sealed]), where)).toThrow('Upgrade');
    for (let at = 0; at < sealed.byteLength; at += 1) {
      const changed = Buffer.from(sealed);
      changed[at] = (changed[at] ?? 0) ^ 1;
      expect(() => sealer.openRaw(changed, where), `byte ${at}`).toThrow();
      expect(() => sealer.openRaw(sealed.subarray(0, at), where), `first ${at}`).toThrow();
    }
  });

  test('has the same key for the same 32 bytes in base64 and hex', () => {
    const hex = Buffer.from(key, 'base64').toString('hex');
    expect(createSealer([hex]).open(sealer.seal('plain', place), place)).toBe('plain');
    for (const bad of ['', 'short', `${hex}00`, key.slice(4)]) expect(() => createSealer([bad])).toThrow('32 bytes');
    expect(() => createSealer([])).toThrow('SHELLFLEET_SEAL_KEY');
  });

  test('has equal digests only for equal values under one key', () => {
    expect(sealer.digest('a')).toBe(sealer.digest('a'));
    expect(sealer.digest('a')).not.toBe(sealer.digest('b'));
    expect(sealer.digest('a')).not.toBe(createSealer([createSealKey()]).digest('a'));
  });
});
