import { createHash } from 'node:crypto';
import {
  type ResolvedSessionSpec,
  type SignatureHeader,
  signatureHeaderSchema,
  toCanonicalJson,
  tryJson,
} from '@shellfleet/protocol';
import type { SealPlace } from '../seal-place.ts';

// `<header as JSON>\n<plain text>`, sealed as a whole, so that a signature reveals nothing about the plain text.
//
// SIGNED-1. The signature is Ed25519 over the canonical JSON of the statement. No field selects another algorithm.
// SIGNED-2. The statement holds the value's place, how the entry runs, the digest of the session's spec, the key, the
//           expiry, and SHA-256 of the exact bytes.

const SIGNED_KINDS: ReadonlySet<SealPlace['kind']> = new Set([
  'spec',
  'close',
  'payload',
  'cancel',
  'file',
  'input',
  'input-end',
  'terminal-input',
  'tool-args',
  'tool-cancel',
  'approval-answer',
]);

/** Returns true for kinds that producers and approvers make, and false for kinds that hosts make. */
export function isSignedKind({ kind }: Pick<SealPlace, 'kind'>): boolean {
  return SIGNED_KINDS.has(kind);
}

/** Signature of a value, by the owner of a known key. */
export interface Signature {
  /** Owner of the key, as configured. */
  signer: string;
  key: string;
  /** ms since 1970 */
  expiresAt: number;
}

export interface SignedValue {
  plain: Buffer;
  /** Header with the signature. Absent when the value is unsigned. */
  header: SignatureHeader | undefined;
}

const LINE_FEED = 10;

export function joinSigned(header: SignatureHeader, plain: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), plain]);
}

/** Splits a value into its header and its plain text. An invalid header counts as no signature. */
export function splitSigned(bytes: Buffer): SignedValue {
  const end = bytes.indexOf(LINE_FEED);
  const header = signatureHeaderSchema.safeParse(tryJson(bytes.subarray(0, end).toString('utf8'))).data;
  return { plain: bytes.subarray(end + 1), header };
}

/** Returns the text that a signature covers. */
export function toStatement(
  plain: Uint8Array,
  { namespace, tenant, session, entry, kind, beside, spec }: SealPlace,
  { key, expiresAt }: Pick<SignatureHeader, 'key' | 'expiresAt'>,
): Buffer {
  return Buffer.from(
    toCanonicalJson({
      purpose: 'shellfleet signature 1',
      ...{ namespace, tenant, session, entry, kind, beside, key, expiresAt },
      spec: spec === undefined ? null : digestOf(spec),
      sha256: createHash('sha256').update(plain).digest('hex'),
    }),
  );
}

const digests = new WeakMap<ResolvedSessionSpec, string>();

function digestOf(spec: ResolvedSessionSpec): string {
  const digest = digests.get(spec) ?? createHash('sha256').update(toCanonicalJson(spec)).digest('hex');
  digests.set(spec, digest);
  return digest;
}
