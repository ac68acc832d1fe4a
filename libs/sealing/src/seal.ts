import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  createSecretKey,
  type KeyObject,
  randomBytes,
} from 'node:crypto';
import { SCHEMA_VERSION, ShellfleetError } from '@shellfleet/protocol';
import type { SealPlace } from './seal-place.ts';
import { isSignedKind, type Signature, splitSigned } from './signatures/signed-value.ts';
import type { Signer } from './signatures/signer.ts';
import type { Verifier } from './signatures/verifier.ts';

/**
 * Sealed values: `<schema version>.<key id>.<base64url of nonce, ciphertext, tag>`; AES-256-GCM, bound to the place where the value is stored. One
 * that its producer signed ends with `.signed`, and has the signature before its plain text.
 */
export interface Sealer {
  /** `schema`: the lowest schema version that understands the value. Default: 1. */
  seal(plain: string | Uint8Array, place: SealPlace, schema?: number): string;
  /** Whether it signs what it seals. */
  readonly signs: boolean;
  /** Whether it asks for signatures. */
  readonly verifies: boolean;
  /** Ids of its keys, the sealing one first. */
  readonly keyIds: readonly string[];
  /** Throws PROTOCOL_MISMATCH when it has a newer schema, SEAL_KEY_UNKNOWN when no key opens it, or it is stored in another place than the one it was sealed for. */
  open(sealed: string, place: SealPlace): string;
  /** As `open`, with who signed it. UNAUTHORIZED, here and there, when known keys are configured and none of them signed it. */
  openSigned(sealed: string, place: SealPlace): { plain: string; signature: Signature | undefined };
  openBytes(sealed: string, place: SealPlace): Buffer;
  /** Throws UNAUTHORIZED, where signatures are asked for: what is signed does not fit what it stands beside. */
  refuse(place: SealPlace, problem: string): void;
  /** Keyed digest with the key's id: equal values give equal digests, and nothing else can be derived from it. */
  digest(value: string): string;
  /** Derives 32 bytes for another use: the same in every process with the same first key. The key cannot be derived from them. */
  deriveKey(purpose: readonly string[]): Uint8Array;
}

interface Key {
  id: string;
  secret: KeyObject;
}

const NONCE_BYTES = 12;
/** A system call for each nonce would cost as much as the cipher of a small value. */
const NONCES_AT_ONCE = 256;
const TAG_BYTES = 16;

/** Who signs what this process seals, and whose signatures it asks for. */
export interface Signing {
  signer?: Signer | undefined;
  verifier?: Verifier | undefined;
}

/** `keys`: base64 or hex of 32 bytes each, the sealing one first, older ones after it. */
export function createSealer(keys: readonly string[], { signer, verifier }: Signing = {}): Sealer {
  const parsed = keys.map(parseKey);
  const current = parsed[0];
  if (current === undefined) throw noKey();
  const open = (sealed: string, place: SealPlace) => {
    // Nobody has written anything that could be signed.
    if (sealed === '' && isSignedKind(place)) verifier?.verify({ plain: Buffer.alloc(0), header: undefined }, place);
    const { bytes, isSigned } = openWith(parsed, sealed, place, () => {
      if (isSignedKind(place)) verifier?.refuse(place);
    });
    const value = isSigned ? splitSigned(bytes) : { plain: bytes, header: undefined };
    if (verifier === undefined || !isSignedKind(place)) return { plain: value.plain, signature: undefined };
    return { plain: value.plain, signature: verifier.verify(value, place) };
  };
  return {
    seal(plain, place, schema = 1) {
      if (signer === undefined || !isSignedKind(place)) return sealWith(current, plain, place, schema, false);
      return sealWith(current, signer.sign(plain, place), place, schema, true);
    },
    signs: signer !== undefined,
    verifies: verifier !== undefined,
    keyIds: parsed.map(({ id }) => id),
    open: (sealed, place) => open(sealed, place).plain.toString('utf8'),
    openSigned(sealed, place) {
      const { plain, signature } = open(sealed, place);
      return { plain: plain.toString('utf8'), signature };
    },
    openBytes: (sealed, place) => open(sealed, place).plain,
    refuse: (place, problem) => verifier?.refuse(place, problem),
    deriveKey: (purpose) =>
      createHmac('sha256', current.secret)
        .update(`shellfleet derived key ${JSON.stringify(purpose)}`)
        .digest(),
    digest: (value) => `${current.id}.${createHmac('sha256', current.secret).update(value).digest('base64url')}`,
  };
}

/** For a process that only lists and reads what is not sealed. Whatever needs a key throws SEAL_KEY_UNKNOWN. */
export function createKeylessSealer(): Sealer {
  const refuse = (): never => {
    throw noKey();
  };
  return {
    ...{ seal: refuse, open: refuse, openSigned: refuse, openBytes: refuse, digest: refuse, deriveKey: refuse },
    ...{ signs: false, verifies: false, keyIds: [], refuse: () => {} },
  };
}

function noKey(): ShellfleetError {
  return new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    'This needs the seal key of the fleet, and none is configured; sessions, hosts, the queue and output can be read without it. Set SHELLFLEET_SEAL_KEY, or start the fleet with `shellfleet up`.',
  );
}

export function createSealKey(): string {
  return randomBytes(32).toString('base64');
}

function parseKey(text: string): Key {
  const bytes = /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : Buffer.from(text, 'base64');
  if (bytes.byteLength !== 32)
    throw new ShellfleetError(
      'SEAL_KEY_UNKNOWN',
      'A seal key is not 32 bytes in base64 or hex. `openssl rand -base64 32` makes one.',
    );
  return {
    id: createHash('sha256').update('shellfleet seal key id').update(bytes).digest('base64url').slice(0, 8),
    secret: createSecretKey(bytes),
  };
}

function toAdditionalData({ namespace, tenant, session, entry, kind, beside }: SealPlace, isSigned: boolean): Buffer {
  const kindOf = isSigned ? `signed ${kind}` : kind;
  return Buffer.from(JSON.stringify([namespace, tenant, session, entry, kindOf, ...beside]));
}

function sealWith(key: Key, plain: string | Uint8Array, place: SealPlace, schema: number, isSigned: boolean): string {
  const nonce = nextNonce();
  const cipher = createCipheriv('aes-256-gcm', key.secret, nonce).setAAD(toAdditionalData(place, isSigned));
  const bytes = typeof plain === 'string' ? Buffer.from(plain) : plain;
  const text = cipher.update(bytes);
  // GCM holds no text back.
  cipher.final();
  const sealed = Buffer.concat([nonce, text, cipher.getAuthTag()]);
  return `${schema}.${key.id}.${sealed.toString('base64url')}${isSigned ? '.signed' : ''}`;
}

let nonces = Buffer.alloc(0);

function nextNonce(): Buffer {
  if (nonces.length === 0) nonces = randomBytes(NONCE_BYTES * NONCES_AT_ONCE);
  const nonce = nonces.subarray(0, NONCE_BYTES);
  nonces = nonces.subarray(NONCE_BYTES);
  return nonce;
}

/** `<schema version>.<key id>` of a sealed value: what a process needs to open it. */
export function sealMarkOf(sealed: string): string {
  return sealed.split('.', 2).join('.');
}

function tooNew({ kind, session }: SealPlace, version: number, context: object): ShellfleetError {
  return new ShellfleetError(
    'PROTOCOL_MISMATCH',
    `The ${kind} of session ${session} has schema ${version}, and this process understands ${SCHEMA_VERSION} at most. Upgrade it: hosts first, then producers.`,
    { ...context, theirs: version, ours: SCHEMA_VERSION },
  );
}

function openWith(
  keys: readonly Key[],
  sealed: string,
  place: SealPlace,
  onAltered: () => void,
): { bytes: Buffer; isSigned: boolean } {
  const [version, keyId, body, mark, ...more] = sealed.split('.');
  const isSigned = mark === 'signed';
  const isMarkUnknown = more.length > 0 || (mark !== undefined && !isSigned);
  const key = keys.find((candidate) => candidate.id === keyId);
  const context = { session: place.session, entry: place.entry, kind: place.kind };
  if (Number(version) > SCHEMA_VERSION) throw tooNew(place, Number(version), context);
  if (!/^[1-9][0-9]*$/.test(version ?? '') || key === undefined || body === undefined || isMarkUnknown) {
    throw new ShellfleetError(
      'SEAL_KEY_UNKNOWN',
      `The ${place.kind} of session ${place.session} was sealed with a key (${keyId ?? 'none'}) that this process does not have.`,
      context,
    );
  }
  const bytes = Buffer.from(body, 'base64url');
  try {
    // Each value has exactly one valid text. The decoder alone would ignore invalid characters.
    if (bytes.toString('base64url') !== body) throw new Error('not base64url');
    const decipher = createDecipheriv('aes-256-gcm', key.secret, bytes.subarray(0, NONCE_BYTES), {
      authTagLength: TAG_BYTES,
    }).setAAD(toAdditionalData(place, isSigned));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    const text = bytes.subarray(NONCE_BYTES, bytes.byteLength - TAG_BYTES);
    const opened = decipher.update(text);
    // It checks the tag. GCM holds no text back.
    decipher.final();
    return { bytes: opened, isSigned };
  } catch (cause) {
    onAltered();
    throw new ShellfleetError(
      'SEAL_KEY_UNKNOWN',
      `The ${place.kind} of session ${place.session} does not open: it was changed, or stands in another place.`,
      context,
      { cause },
    );
  }
}
