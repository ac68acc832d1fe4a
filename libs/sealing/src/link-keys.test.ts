import { createPublicKey, diffieHellman } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { linkKeysOf, pskOf } from './link-keys.ts';
import { createSealKey } from './seal.ts';

const key = createSealKey();
const other = createSealKey();

describe('the keys of a link', () => {
  test('are the same for the same seal key, in every process', () => {
    const [one, two] = [linkKeysOf(key), linkKeysOf(Buffer.from(key, 'base64').toString('hex'))];
    expect(one.privateKey.equals(two.privateKey)).toBe(true);
    expect(one.publicKey).toEqual(two.publicKey);
    expect(one.id).toBe(two.id);
  });

  test('have values that stay, since keepers of earlier versions are adopted with them', () => {
    const fixed = '00'.repeat(31).concat('01');
    expect(Buffer.from(linkKeysOf(fixed).publicKey).toString('hex')).toBe(
      '7f10283c93370b91d51f46eeec0426033bc217e1fe6b07cd0280c601aa650c72',
    );
    expect(pskOf(fixed, 'sessions', 'sf-1').toString('hex')).toBe(
      '799faf0099532883c157eaf2b166b96f98289b4c78a4a369bdeefa6f846c631c',
    );
  });

  test('are a pair: a secret with the private key is that with the public key', () => {
    const [ours, theirs] = [linkKeysOf(key), linkKeysOf(other)];
    const secret = (one: typeof ours, two: typeof ours) =>
      diffieHellman({ privateKey: one.privateKey, publicKey: createPublicKey(two.privateKey) });
    expect(secret(ours, theirs)).toEqual(secret(theirs, ours));
    expect(ours.publicKey).toHaveLength(32);
    const { x } = createPublicKey(ours.privateKey).export({ format: 'jwk' });
    expect(Buffer.from(ours.publicKey).toString('base64url')).toBe(x);
  });

  test('differ by seal key, namespace and name of the Pod', () => {
    const psks = [
      pskOf(key, 'a', 'b'),
      pskOf(other, 'a', 'b'),
      pskOf(key, 'b', 'b'),
      pskOf(key, 'a', 'c'),
      pskOf(key, 'ab', ''),
      pskOf(key, '', 'ab'),
    ].map((psk) => psk.toString('hex'));
    expect(new Set(psks).size).toBe(psks.length);
    expect(linkKeysOf(key).publicKey).not.toEqual(linkKeysOf(other).publicKey);
  });

  test('have an id that fits in a label of Kubernetes', () => {
    expect(linkKeysOf(key).id).toMatch(/^[0-9a-f]{12}$/);
    expect(linkKeysOf(key).id).not.toBe(linkKeysOf(other).id);
  });

  test('need a seal key of 32 bytes', () => {
    expect(() => linkKeysOf('short')).toThrow('32 bytes');
    expect(() => pskOf('short', 'a', 'b')).toThrow('32 bytes');
  });
});
