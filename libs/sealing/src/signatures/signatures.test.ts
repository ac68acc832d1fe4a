import { generateKeyPairSync } from 'node:crypto';
import { sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { createSealer, createSealKey } from '../seal.ts';
import { sealPlace } from '../seal-place.ts';
import { splitSigned } from './signed-value.ts';
import { createSigner } from './signer.ts';
import { parsePrivateKey, parsePublicKey } from './signing-keys.ts';
import { createVerifier, type KnownKey } from './verifier.ts';

const sealKey = createSealKey();
const keys = sessionKeys('n', 't', 's');
const spec = sessionSpecSchema.parse({});
const ENTRY = { id: 'e', generation: 'g', retry: 'never', inbox: '', spec };
const PLACE = sealPlace('payload', keys, ENTRY);

const first = generateKeyPairSync('ed25519');
const second = generateKeyPairSync('ed25519');
const approver = generateKeyPairSync('ed25519');
const known = (publicKey: KnownKey['publicKey'], id = 'ci', tenants = ['t']): KnownKey => ({ id, tenants, publicKey });

const signerOf = ({ privateKey }: typeof first) =>
  createSealer([sealKey], { signer: createSigner(privateKey, () => 60_000) });

function host(producers = [known(first.publicKey)], approvers = [known(approver.publicKey, 'ada')]) {
  const problems: string[] = [];
  const verifier = createVerifier({ producers, approvers }, ({ kind }, problem) =>
    problems.push(`${kind}: ${problem}`),
  );
  return { sealer: createSealer([sealKey], { verifier }), problems };
}

/** Returns why a host refuses a value in a place, or undefined when it opens the value. */
function refusalOf(sealed: string, place = PLACE, at = host()): string | undefined {
  try {
    at.sealer.open(sealed, place);
    return undefined;
  } catch (error) {
    expect(error).toMatchObject({ code: 'UNAUTHORIZED', retryable: false });
    expect(String(error)).not.toContain('ci');
    return at.problems.join();
  }
}

describe('signatures', () => {
  test('let a host open and attribute a value that a known producer signed', () => {
    const sealed = signerOf(first).seal('echo hi', PLACE);
    expect(host().sealer.openSigned(sealed, PLACE)).toEqual({
      plain: 'echo hi',
      signature: { signer: 'ci', key: expect.stringMatching(/^[\w-]{16}$/), expiresAt: expect.any(Number) },
    });
    expect(createSealer([sealKey]).open(sealed, PLACE)).toBe('echo hi');
  });

  test('must be present, of a known key, and of a key of this tenant', () => {
    expect(refusalOf(createSealer([sealKey]).seal('echo hi', PLACE))).toBe('payload: it is not signed');
    expect(refusalOf(signerOf(second).seal('echo hi', PLACE))).toMatch(/^payload: the key [\w-]{16} is not known$/);
    const elsewhere = host([known(first.publicKey, 'ci', ['other'])]);
    expect(refusalOf(signerOf(first).seal('echo hi', PLACE), PLACE, elsewhere)).toBe(
      'payload: the key of ci is not known for this tenant',
    );
    expect(
      refusalOf(signerOf(first).seal('x', PLACE), PLACE, host([known(first.publicKey, 'ci', ['*'])])),
    ).toBeUndefined();
  });

  /**
   * Forges a value with the seal key but without a signing key: copies a signed value from another place, or alters it.
   */
  function forge(
    change: (header: Record<string, unknown>, plain: Buffer) => [object, Buffer | string],
    from = PLACE,
    to = PLACE,
  ) {
    const asSigned = createSealer([sealKey], {
      signer: { sign: (plain) => Buffer.from(plain) },
    });
    const signed = createSigner(first.privateKey, () => 60_000).sign('echo hi', from);
    const { header, plain } = splitSigned(signed);
    const [changed, text] = change({ ...header }, plain);
    return asSigned.seal(Buffer.concat([Buffer.from(`${JSON.stringify(changed)}\n`), Buffer.from(text)]), to);
  }

  const NOT_OF_THIS = 'payload: the signature by ci is not of this value in this place';

  test.each<[string, Parameters<typeof forge>[0], string]>([
    ['its text', (header) => [header, 'rm -rf /'], NOT_OF_THIS],
    ['its expiry', (header, plain) => [{ ...header, expiresAt: Number(header.expiresAt) + 1 }, plain], NOT_OF_THIS],
    ['its signature', (header, plain) => [{ ...header, signature: 'A'.repeat(86) }, plain], NOT_OF_THIS],
    [
      'the form of its signature',
      (header, plain) => [{ ...header, signature: `${header.signature}=` }, plain],
      NOT_OF_THIS,
    ],
    ['its key', (header, plain) => [{ ...header, key: 'nobody' }, plain], 'payload: the key nobody is not known'],
    ['an algorithm beside it', (header, plain) => [{ ...header, alg: 'none' }, plain], 'payload: it is not signed'],
    ['no signature left', ({ signature: _, ...header }, plain) => [header, plain], 'payload: it is not signed'],
  ])('protect a value that is sealed again after a change of %s', (_, change, problem) => {
    expect(refusalOf(forge(change))).toBe(problem);
    expect(refusalOf(forge((header, plain) => [header, plain]))).toBeUndefined();
  });

  test.each([
    ['session', sealPlace('payload', sessionKeys('n', 't', 'other'), ENTRY)],
    ['namespace', sealPlace('payload', sessionKeys('other', 't', 's'), ENTRY)],
    ['generation', sealPlace('payload', keys, { ...ENTRY, generation: 'other' })],
    ['command', sealPlace('payload', keys, { ...ENTRY, id: 'other' })],
    ['retry', sealPlace('payload', keys, { ...ENTRY, retry: 'idempotent' })],
    ['inbox', sealPlace('payload', keys, { ...ENTRY, inbox: 'other' })],
    ['spec', sealPlace('payload', keys, { ...ENTRY, spec: sessionSpecSchema.parse({ image: 'other' }) })],
    ['kind', sealPlace('input', keys, 'e')],
  ])('are not valid for another %s', (_, from) => {
    expect(refusalOf(forge((header, plain) => [header, plain], from))).toBe(NOT_OF_THIS);
  });

  test('are not valid for another tenant, even if the key is valid for both', () => {
    const from = sealPlace('payload', sessionKeys('n', 'other', 's'), ENTRY);
    const both = host([known(first.publicKey, 'ci', ['t', 'other'])]);
    expect(
      refusalOf(
        forge((header, plain) => [header, plain], from),
        PLACE,
        both,
      ),
    ).toBe(NOT_OF_THIS);
  });

  test('are valid by each of several keys of a producer, until the key is removed', () => {
    const both = () => host([known(first.publicKey), known(second.publicKey)]);
    expect(refusalOf(signerOf(first).seal('x', PLACE), PLACE, both())).toBeUndefined();
    expect(refusalOf(signerOf(second).seal('x', PLACE), PLACE, both())).toBeUndefined();
    expect(refusalOf(signerOf(first).seal('x', PLACE), PLACE, host([known(second.publicKey)]))).toMatch('is not known');
  });

  test('of approvers are valid for answers, not for submissions', () => {
    const answer = sealPlace('approval-answer', keys, { question: '' });
    expect(refusalOf(signerOf(approver).seal('{}', answer), answer)).toBeUndefined();
    expect(refusalOf(signerOf(first).seal('{}', answer), answer)).toMatch(/^approval-answer: the key .* is not known$/);
    expect(refusalOf(signerOf(approver).seal('x', PLACE))).toMatch(/^payload: the key .* is not known$/);
  });

  test('are absent and unnecessary for values that hosts seal', () => {
    const place = sealPlace('reply', keys, 'e');
    expect(host().sealer.open(signerOf(first).seal('x', place), place)).toBe('x');
    expect(host().sealer.open(createSealer([sealKey]).seal('x', place), place)).toBe('x');
  });

  test('are not interchangeable: a signed value is not valid as unsigned, nor the reverse', () => {
    const sealed = signerOf(first).seal('x', PLACE);
    expect(() => createSealer([sealKey]).open(sealed.replace('.signed', ''), PLACE)).toThrow('does not open');
    const unsigned = createSealer([sealKey]).seal('x', PLACE);
    expect(refusalOf(`${unsigned}.signed`)).toBe(
      'payload: it was altered, or stands in another place than the one it was made for',
    );
  });

  test.each(['pem', 'der', 'raw'])('can be made and verified with keys in the format %s', (form) => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519');
    const write = (key: typeof privateKey, type: 'pkcs8' | 'spki'): string => {
      if (form === 'pem') return String(key.export({ format: 'pem', type: type as never }));
      const der = key.export({ format: 'der', type: type as never }) as unknown as Buffer;
      return (form === 'der' ? der : der.subarray(-32)).toString('base64');
    };
    expect(parsePrivateKey(write(privateKey, 'pkcs8'))?.equals(privateKey)).toBe(true);
    expect(parsePublicKey(write(publicKey, 'spki'))?.equals(publicKey)).toBe(true);
  });

  test('refuse keys of another kind, and a private key in place of the public one', () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(parsePublicKey(String(other.publicKey.export({ format: 'pem', type: 'spki' })))).toBeUndefined();
    expect(parsePublicKey(String(first.privateKey.export({ format: 'pem', type: 'pkcs8' })))).toBeUndefined();
    expect(parsePrivateKey('/etc/shellfleet/key.pem')).toBeUndefined();
    expect(parsePublicKey('')).toBeUndefined();
  });
});
