import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import { sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { createSealer, createSealKey, type Sealer } from '../seal.ts';
import { type SealPlace, sealPlace } from '../seal-place.ts';
import {
  checkInputEnd,
  isSignedClose,
  isSignedToolCancel,
  signCancel,
  signClose,
  signedReason,
  signInputEnd,
  signToolCancel,
} from './requests.ts';
import { createSigner } from './signer.ts';
import { createVerifier } from './verifier.ts';

// Each kind of value that producers sign, with everything that can be wrong with it.

const sealKey = createSealKey();
const [producer, stranger, removed, approver, foreign] = Array.from({ length: 5 }, () =>
  generateKeyPairSync('ed25519'),
);
const keys = sessionKeys('n', 't', 's');
const SPEC = sessionSpecSchema.parse({});
const DAY_MS = 86_400_000;

const signedBy = (pair: KeyPairKeyObjectResult | undefined, validForMs = DAY_MS) =>
  createSealer([sealKey], pair && { signer: createSigner(pair.privateKey, () => validForMs) });

function host() {
  const problems: string[] = [];
  const known = (pair: KeyPairKeyObjectResult | undefined, id: string, tenants = ['t']) =>
    pair === undefined ? [] : [{ id, tenants, publicKey: pair.publicKey }];
  const verifier = createVerifier(
    {
      producers: [...known(producer, 'ci'), ...known(foreign, 'elsewhere', ['other'])],
      approvers: known(approver, 'ada'),
    },
    ({ kind, session, entry }, problem) => problems.push(`${kind} of ${session} ${entry}: ${problem}`),
  );
  return { sealer: createSealer([sealKey], { verifier }), problems };
}

const CALL = { tenant: 't', name: 'tool', id: 'e' };

/** For each kind, how it is signed, and whether a host acts on it. */
const KINDS: Record<string, { sign(by: Sealer, at?: Place): string; accepts(by: Sealer, signed: string): boolean }> = {
  cancel: {
    sign: (by, { of = keys, entry = 'e' } = {}) => signCancel(by, of, entry, 'enough'),
    accepts: (by, signed) => signedReason(by, keys, 'e', { reason: 'forged', signed }) === 'enough',
  },
  close: {
    sign: (by, { of = keys, entry = 'e' } = {}) => signClose(by, of, entry),
    accepts: (by, signed) => isSignedClose(by, keys, 'e', signed),
  },
  'input-end': {
    sign: (by, { of = keys, entry = 'e' } = {}) => signInputEnd(by, of, entry, { closes: 'end', bytes: 3 }),
    accepts: (by, signed) => ends(by, { closes: 'end', bytes: 3 }, signed),
  },
  'tool-cancel': {
    sign: (by, { of = keys, entry = 'e' } = {}) =>
      signToolCancel(by, of, { ...CALL, tenant: of.tenant, id: entry, name: of.session === 's' ? 'tool' : 'another' }),
    accepts: (by, signed) => isSignedToolCancel(by, signed, keys, CALL),
  },
};

/** Values that are sealed and opened. A host checks their expiry when it decides about them, not when it opens them. */
const SUBMITTED: Record<string, (of: typeof keys, entry: string) => SealPlace> = {
  spec: (of, generation) => sealPlace('spec', of, { generation }),
  payload: (of, id) => sealPlace('payload', of, { id, generation: 'g', retry: 'never', inbox: '', spec: SPEC }),
  file: (of, operation) => sealPlace('file', of, { operation, generation: 'g', spec: SPEC }),
  input: (of, entry) => sealPlace('input', of, entry),
  'terminal-input': (of, terminal) => sealPlace('terminal-input', of, { terminal, number: 1 }),
  'tool-args': (of, id) => sealPlace('tool-args', of, { tenant: of.tenant, name: of.session, id }),
};
for (const [kind, place] of Object.entries(SUBMITTED))
  KINDS[kind] = {
    sign: (by, { of = keys, entry = 'e' } = {}) => by.seal('plain', place(of, entry)),
    accepts: (by, signed) => opens(by, signed, place(keys, 'e')),
  };
const CHECKED_LATER = ['spec', 'payload', 'file', 'input'];

interface Place {
  of?: typeof keys;
  entry?: string;
}

function opens(by: Sealer, signed: string, place: SealPlace): boolean {
  try {
    return by.open(signed, place) === 'plain';
  } catch (error) {
    expect(error).toMatchObject({ code: 'UNAUTHORIZED' });
    return false;
  }
}

function ends(by: Sealer, end: Parameters<typeof checkInputEnd>[3], signed: string): boolean {
  try {
    checkInputEnd(by, keys, 'e', end, signed);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'UNAUTHORIZED' });
    return false;
  }
}

const MOVED = 'it was altered, or stands in another place than the one it was made for';
const WRONG: [string, (sign: (typeof KINDS)[string]['sign']) => string, RegExp | string][] = [
  ['nothing', () => '', 'it is not signed'],
  ['one by an unknown key', (sign) => sign(signedBy(stranger)), /is not known$/],
  ['one by a key that was removed', (sign) => sign(signedBy(removed)), /is not known$/],
  [
    'one by a key of another tenant',
    (sign) => sign(signedBy(foreign)),
    'the key of elsewhere is not known for this tenant',
  ],
  ['one by an approver', (sign) => sign(signedBy(approver)), /is not known$/],
  ['an expired one', (sign) => sign(signedBy(producer, -1)), 'the signature by ci has expired'],
  ['one for another session', (sign) => sign(signedBy(producer), { of: sessionKeys('n', 't', 'x') }), MOVED],
  ['one for another tenant', (sign) => sign(signedBy(producer), { of: sessionKeys('n', 'other', 's') }), MOVED],
  ['one for another namespace', (sign) => sign(signedBy(producer), { of: sessionKeys('x', 't', 's') }), MOVED],
  ['one for another entry or generation', (sign) => sign(signedBy(producer), { entry: 'x' }), MOVED],
  ['an altered one', (sign) => flip(sign(signedBy(producer))), MOVED],
];

function flip(sealed: string): string {
  const at = sealed.length - 40;
  return `${sealed.slice(0, at)}${sealed[at] === 'A' ? 'B' : 'A'}${sealed.slice(at + 1)}`;
}

describe('signed requests', () => {
  test.each(Object.keys(KINDS))('let a host act on a %s that a known producer signed', (kind) => {
    const { sign, accepts } = KINDS[kind] ?? fail();
    const { sealer, problems } = host();
    expect(accepts(sealer, sign(signedBy(producer)))).toBe(true);
    expect(problems).toEqual([]);
  });

  test.each(Object.keys(KINDS))('are refused, and reported to the host, for each wrong %s', (kind) => {
    const { sign, accepts } = KINDS[kind] ?? fail();
    for (const [what, forge, problem] of WRONG) {
      if (what === 'an expired one' && CHECKED_LATER.includes(kind)) continue;
      const { sealer, problems } = host();
      expect([what, accepts(sealer, forge(sign))]).toEqual([what, false]);
      expect([what, problems.map((text) => text.split(': ')[1])]).toEqual([
        what,
        [typeof problem === 'string' ? problem : expect.stringMatching(problem)],
      ]);
    }
  });

  test('of one kind do not count as another kind', () => {
    for (const [kind, { accepts }] of Object.entries(KINDS))
      for (const [other, { sign }] of Object.entries(KINDS)) {
        const { sealer } = host();
        expect([kind, other, accepts(sealer, sign(signedBy(producer)))]).toEqual([kind, other, kind === other]);
      }
  });

  test('end a stdin only after the signed number of bytes, and with the signed end', () => {
    const signed = signInputEnd(signedBy(producer), keys, 'e', { closes: 'end', bytes: 3 });
    const { sealer, problems } = host();
    expect(ends(sealer, { closes: 'end', bytes: 2 }, signed)).toBe(false);
    expect(ends(sealer, { closes: 'broken', bytes: 3 }, signed)).toBe(false);
    expect(problems).toEqual(Array(2).fill('input-end of s e: it ends somewhere else'));
  });

  test('are unsigned when the producer has no key', () => {
    const unsigned = signedBy(undefined);
    const end = { closes: 'end', bytes: 3 } as const;
    expect(signCancel(unsigned, keys, 'e', 'why')).toBe('');
    expect(signClose(unsigned, keys, 'g')).toBe('');
    expect(signInputEnd(unsigned, keys, 'e', end)).toBe('');
    expect(signToolCancel(unsigned, keys, CALL)).toBe('');
  });

  test('need no signature at a host without keys', () => {
    const sealer = createSealer([sealKey]);
    expect(signedReason(sealer, keys, 'e', { reason: 'why', signed: '' })).toBe('why');
    expect(isSignedClose(sealer, keys, 'g', '')).toBe(true);
    expect(isSignedToolCancel(sealer, '', keys, CALL)).toBe(true);
    expect(() => checkInputEnd(sealer, keys, 'e', { closes: 'end', bytes: 9 }, '')).not.toThrow();
  });
});

function fail(): never {
  throw new Error('There is no such kind');
}
