// Tokens with which a session proves to the egress proxy of its fleet what it may reach. They are signed with a key
// that is derived from a seal key, so they rotate as seal keys do.
import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto';
import { parseSealKey } from './seal-key.ts';

export interface EgressStatement {
  namespace: string;
  tenant: string;
  session: string;
  /** The `allowedHosts` of the session's spec. */
  hosts: readonly string[];
  /** Time in ms from which the token is worth nothing. */
  expiresAt: number;
}

const KEY_BYTES = 32;
/** Most characters of a token. A proxy's client sends it with each request, in a head of at most 16 KiB. */
export const MOST_TOKEN_CHARS = 11_000;

/** Returns the key of the tokens, from which nobody learns the seal key. */
export function egressKeyOf(sealKey: string): Buffer {
  const { secret } = parseSealKey(sealKey);
  return Buffer.from(hkdfSync('sha256', secret, new Uint8Array(0), 'shellfleet egress', KEY_BYTES));
}

/** Returns a token: the statement and its MAC, without a character that a URL would escape. */
export function signEgress(key: Buffer, statement: EgressStatement): string {
  const text = Buffer.from(JSON.stringify(statement)).toString('base64url');
  return `${text}.${macOf(key, text)}`;
}

/** Returns the statement of a token that one of the keys has signed and that has not expired. */
export function verifyEgress(keys: readonly Buffer[], token: string, now = Date.now()): EgressStatement | undefined {
  const [text = '', mac = '', ...more] = token.length > MOST_TOKEN_CHARS ? [] : token.split('.');
  if (more.length > 0 || !keys.some((key) => areEqual(macOf(key, text), mac))) return undefined;
  const statement = JSON.parse(Buffer.from(text, 'base64url').toString()) as EgressStatement;
  return statement.expiresAt > now ? statement : undefined;
}

function macOf(key: Buffer, text: string): string {
  return createHmac('sha256', key).update(text).digest('base64url');
}

function areEqual(mac: string, given: string): boolean {
  const [one, other] = [Buffer.from(mac), Buffer.from(given)];
  return one.byteLength === other.byteLength && timingSafeEqual(one, other);
}
