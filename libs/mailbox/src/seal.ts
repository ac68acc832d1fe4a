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

/** Sealed values: `<schema version>.<key id>.<base64url of nonce, ciphertext, tag>`; AES-256-GCM, bound to the place where the value is stored. */
export interface Sealer {
  /** `schema`: the lowest schema version that understands the value. Default: 1. */
  seal(plain: string | Uint8Array, place: SealPlace, schema?: number): string;
  /** Ids of its keys, the sealing one first. */
  readonly keyIds: readonly string[];
  /** Throws PROTOCOL_MISMATCH when it has a newer schema, SEAL_KEY_UNKNOWN when no key opens it, or it is stored in another place than the one it was sealed for. */
  open(sealed: string, place: SealPlace): string;
  openBytes(sealed: string, place: SealPlace): Buffer;
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
const TAG_BYTES = 16;

/** `keys`: base64 or hex of 32 bytes each, the sealing one first, older ones after it. */
export function createSealer(keys: readonly string[]): Sealer {
  const parsed = keys.map(parseKey);
  const current = parsed[0];
  if (current === undefined)
    throw new ShellfleetError(
      'SEAL_KEY_UNKNOWN',
      'No seal key is configured. Set SHELLFLEET_SEAL_KEY, or start the fleet with `shellfleet up`.',
    );
  return {
    seal: (plain, place, schema = 1) => sealWith(current, plain, place, schema),
    keyIds: parsed.map(({ id }) => id),
    open: (sealed, place) => openWith(parsed, sealed, place).toString('utf8'),
    openBytes: (sealed, place) => openWith(parsed, sealed, place),
    deriveKey: (purpose) =>
      createHmac('sha256', current.secret)
        .update(`shellfleet derived key ${JSON.stringify(purpose)}`)
        .digest(),
    digest: (value) => `${current.id}.${createHmac('sha256', current.secret).update(value).digest('base64url')}`,
  };
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

function toAdditionalData(place: SealPlace): Buffer {
  return Buffer.from(
    JSON.stringify([place.namespace, place.tenant, place.session, place.entry, place.kind, ...place.beside]),
  );
}

function sealWith(key: Key, plain: string | Uint8Array, place: SealPlace, schema: number): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key.secret, nonce).setAAD(toAdditionalData(place));
  const bytes = typeof plain === 'string' ? Buffer.from(plain) : plain;
  const sealed = Buffer.concat([nonce, cipher.update(bytes), cipher.final(), cipher.getAuthTag()]);
  return `${schema}.${key.id}.${sealed.toString('base64url')}`;
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

function openWith(keys: readonly Key[], sealed: string, place: SealPlace): Buffer {
  const [version, keyId, body, ...more] = sealed.split('.');
  const key = keys.find((candidate) => candidate.id === keyId);
  const context = { session: place.session, entry: place.entry, kind: place.kind };
  if (Number(version) > SCHEMA_VERSION) throw tooNew(place, Number(version), context);
  if (!/^[1-9][0-9]*$/.test(version ?? '') || key === undefined || body === undefined || more.length > 0) {
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
    }).setAAD(toAdditionalData(place));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([
      decipher.update(bytes.subarray(NONCE_BYTES, bytes.byteLength - TAG_BYTES)),
      decipher.final(),
    ]);
  } catch (cause) {
    throw new ShellfleetError(
      'SEAL_KEY_UNKNOWN',
      `The ${place.kind} of session ${place.session} does not open: it was changed, or stands in another place.`,
      context,
      { cause },
    );
  }
}
