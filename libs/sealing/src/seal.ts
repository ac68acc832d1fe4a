import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto';
import { SCHEMA_VERSION, ShellfleetError } from '@shellfleet/protocol';
import { parseSealKey, type SealKey } from './seal-key.ts';
import type { SealPlace } from './seal-place.ts';
import { isSignedKind, type Signature, splitSigned } from './signatures/signed-value.ts';
import type { Signer } from './signatures/signer.ts';
import type { Verifier } from './signatures/verifier.ts';

/**
 * Seals values as `<schema version>.<key id>.<base64url of nonce, ciphertext, tag>` (AES-256-GCM). A value that its
 * producer signed ends with `.signed`, and its plain text begins with the signature.
 */
export interface Sealer {
  /** Seals a value. `schema` is the lowest schema version that understands it (default 1). */
  seal(plain: string | Uint8Array, place: SealPlace, schema?: number): string;
  readonly signs: boolean;
  readonly verifies: boolean;
  /** Ids of the keys. The first one seals. */
  readonly keyIds: readonly string[];
  /** Opens a value. Throws PROTOCOL_MISMATCH (newer schema) or SEAL_KEY_UNKNOWN (no key fits, or another place). */
  open(sealed: string, place: SealPlace): string;
  /**
   * Opens a value and returns its signature too. Throws as `open` does: both throw UNAUTHORIZED if the signature of a
   * known key is required and missing.
   */
  openSigned(sealed: string, place: SealPlace): { plain: string; signature: Signature | undefined };
  openBytes(sealed: string, place: SealPlace): Buffer;
  /**
   * Seals the joined parts as `<schema version>.<key id>.` and the bytes of nonce, ciphertext and tag. For kinds that
   * are never signed.
   */
  sealRaw(parts: readonly Uint8Array[], place: SealPlace): Buffer;
  /** Opens a value of `sealRaw`. Throws as `open` does. */
  openRaw(sealed: Buffer, place: SealPlace): Buffer;
  /**
   * Throws UNAUTHORIZED if signatures are required. It is called for a signed value that contradicts the plain fields
   * next to it.
   */
  refuse(place: SealPlace, problem: string): void;
  /** Returns a keyed digest with the key's id. It reveals only whether values are equal. */
  digest(value: string): string;
  /** Derives 32 bytes that are equal in every process with the same first key, and do not reveal the key. */
  deriveKey(purpose: readonly string[]): Uint8Array;
}

const NONCE_BYTES = 12;
/**
 * Number of nonces that one system call reads. A call for each nonce would cost as much as encrypting a small value.
 */
const NONCES_AT_ONCE = 256;
const TAG_BYTES = 16;

export interface Signing {
  signer?: Signer | undefined;
  verifier?: Verifier | undefined;
}

/** Creates a sealer. `keys` are 32 bytes each, in base64 or hex. The first key seals, and the others only open. */
export function createSealer(keys: readonly string[], { signer, verifier }: Signing = {}): Sealer {
  const parsed = keys.map(parseSealKey);
  const current = parsed[0];
  if (current === undefined) throw noKey();
  const open = (sealed: string, place: SealPlace) => {
    // An empty value contains no signature.
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
    sealRaw: (parts, place) =>
      Buffer.concat([Buffer.from(`1.${current.id}.`), ...encrypt(current, parts, place, false)]),
    openRaw: (sealed, place) => openRaw(parsed, sealed, place),
    refuse: (place, problem) => verifier?.refuse(place, problem),
    deriveKey: (purpose) =>
      createHmac('sha256', current.secret)
        .update(`shellfleet derived key ${JSON.stringify(purpose)}`)
        .digest(),
    digest: (value) => `${current.id}.${createHmac('sha256', current.secret).update(value).digest('base64url')}`,
  };
}

/**
 * Returns a sealer without keys, for processes that read only plain values. Methods that need a key throw
 * SEAL_KEY_UNKNOWN.
 */
export function createKeylessSealer(): Sealer {
  const refuse = (): never => {
    throw noKey();
  };
  return {
    ...{ seal: refuse, open: refuse, openSigned: refuse, openBytes: refuse, sealRaw: refuse, openRaw: refuse },
    ...{ digest: refuse, deriveKey: refuse },
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

function toAdditionalData({ namespace, tenant, session, entry, kind, beside }: SealPlace, isSigned: boolean): Buffer {
  const kindOf = isSigned ? `signed ${kind}` : kind;
  return Buffer.from(JSON.stringify([namespace, tenant, session, entry, kindOf, ...beside]));
}

function sealWith(
  key: SealKey,
  plain: string | Uint8Array,
  place: SealPlace,
  schema: number,
  isSigned: boolean,
): string {
  const bytes = typeof plain === 'string' ? Buffer.from(plain) : plain;
  const sealed = Buffer.concat(encrypt(key, [bytes], place, isSigned));
  return `${schema}.${key.id}.${sealed.toString('base64url')}${isSigned ? '.signed' : ''}`;
}

/** Returns nonce, ciphertext and tag, in parts. */
function encrypt(key: SealKey, parts: readonly Uint8Array[], place: SealPlace, isSigned: boolean): Buffer[] {
  const nonce = nextNonce();
  const cipher = createCipheriv('aes-256-gcm', key.secret, nonce).setAAD(toAdditionalData(place, isSigned));
  const texts = parts.map((part) => cipher.update(part));
  // final() returns no text in GCM.
  cipher.final();
  return [nonce, ...texts, cipher.getAuthTag()];
}

let nonces = Buffer.alloc(0);

function nextNonce(): Buffer {
  if (nonces.length === 0) nonces = randomBytes(NONCE_BYTES * NONCES_AT_ONCE);
  const nonce = nonces.subarray(0, NONCE_BYTES);
  nonces = nonces.subarray(NONCE_BYTES);
  return nonce;
}

/** Returns `<schema version>.<key id>` of a sealed value, which shows a process whether it can open the value. */
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
  keys: readonly SealKey[],
  sealed: string,
  place: SealPlace,
  onAltered: () => void,
): { bytes: Buffer; isSigned: boolean } {
  const [version, keyId, body, mark, ...more] = sealed.split('.');
  const isSigned = mark === 'signed';
  const isMarkUnknown = more.length > 0 || (mark !== undefined && !isSigned);
  const key = findKey(keys, version, isMarkUnknown || body === undefined ? undefined : keyId, place);
  try {
    const bytes = Buffer.from(body ?? '', 'base64url');
    // The decoder ignores invalid characters, but each value has exactly one valid encoding.
    if (bytes.toString('base64url') !== body) throw new Error('not base64url');
    return { bytes: decrypt(key, bytes, place, isSigned), isSigned };
  } catch (cause) {
    onAltered();
    throw altered(place, cause);
  }
}

/** Most characters of a schema version and a key id with their dots. */
const MOST_MARK_CHARS = 128;

function openRaw(keys: readonly SealKey[], sealed: Buffer, place: SealPlace): Buffer {
  const [, version, keyId] = /^([^.]*)\.([^.]*)\./.exec(sealed.toString('latin1', 0, MOST_MARK_CHARS)) ?? [];
  const key = findKey(keys, version, keyId, place);
  try {
    return decrypt(key, sealed.subarray(`${version}.${keyId}.`.length), place, false);
  } catch (cause) {
    throw altered(place, cause);
  }
}

/** Returns the key that sealed a value. Throws PROTOCOL_MISMATCH or SEAL_KEY_UNKNOWN. */
function findKey(
  keys: readonly SealKey[],
  version: string | undefined,
  keyId: string | undefined,
  place: SealPlace,
): SealKey {
  if (Number(version) > SCHEMA_VERSION) throw tooNew(place, Number(version), contextOf(place));
  const key = keys.find((candidate) => candidate.id === keyId);
  if (/^[1-9][0-9]*$/.test(version ?? '') && key !== undefined) return key;
  throw new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    `The ${place.kind} of session ${place.session} was sealed with a key (${keyId ?? 'none'}) that this process does not have.`,
    contextOf(place),
  );
}

/** Decrypts nonce, ciphertext and tag. Throws an error of the cipher if they were changed. */
function decrypt(key: SealKey, bytes: Buffer, place: SealPlace, isSigned: boolean): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key.secret, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  }).setAAD(toAdditionalData(place, isSigned));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  const opened = decipher.update(bytes.subarray(NONCE_BYTES, bytes.byteLength - TAG_BYTES));
  // final() checks the tag. It returns no text in GCM.
  decipher.final();
  return opened;
}

function altered(place: SealPlace, cause: unknown): ShellfleetError {
  return new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    `The ${place.kind} of session ${place.session} does not open: it was changed, or stands in another place.`,
    contextOf(place),
    { cause },
  );
}

function contextOf({ session, entry, kind }: SealPlace) {
  return { session, entry, kind };
}
