import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type AuditEvent, type AuditHead, type AuditRecord, auditRecordSchema, tryJson } from '@shellfleet/protocol';
import { createSealer } from '../seal.ts';

// A line of an audit file: `{"mac":"…","record":{…}}`. The code covers the record, which contains the code of the
// record before.

export const CHAIN_START: AuditHead = { n: 0, mac: '' };

const LINE = /^\{"mac":"([A-Za-z0-9_-]{43})","record":(\{.*\})\}$/s;

export interface AuditChainOf {
  namespace: string;
  host: string;
  tenant: string;
}

export interface AuditKey {
  id: string;
  /** Kept as an object: preparing a key takes OpenSSL longer than authenticating a record. */
  secret: KeyObject;
}

/** Returns one key of a chain for each seal key. The first authenticates new records. */
export function auditKeys(sealKeys: readonly string[], { namespace, host, tenant }: AuditChainOf): AuditKey[] {
  return sealKeys.map((key) => {
    const { deriveKey, keyIds } = createSealer([key]);
    return { id: keyIds[0] ?? '', secret: createSecretKey(deriveKey(['audit', namespace, host, tenant])) };
  });
}

/** Returns the line of an event that follows `before`, with its line feed, and the new head of the chain. */
export function toAuditLine(event: AuditEvent, before: AuditHead, at: string, key: AuditKey) {
  const n = before.n + 1;
  const record: AuditRecord = { n, at, key: key.id, previous: before.mac, event };
  const text = JSON.stringify(record);
  const mac = macOf(text, key);
  return { line: `{"mac":"${mac}","record":${text}}\n`, head: { n, mac } };
}

/** Returns undefined for a line that is no audit line. It is `authentic` when one of the keys made its code. */
export function parseAuditLine(line: string, keys: readonly AuditKey[]) {
  const [, mac = '', text = ''] = LINE.exec(line) ?? [];
  const record = auditRecordSchema.safeParse(tryJson(text)).data;
  if (record === undefined) return undefined;
  const key = keys.find(({ id }) => id === record.key);
  const authentic = key !== undefined && timingSafeEqual(Buffer.from(mac), Buffer.from(macOf(text, key)));
  return { record, mac, authentic, keyKnown: key !== undefined };
}

function macOf(text: string, { secret }: AuditKey): string {
  return createHmac('sha256', secret).update(text).digest('base64url');
}
