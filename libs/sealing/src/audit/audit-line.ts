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
  /** Boot of the one process that writes the chain, if the audit is in Redis. */
  boot?: string;
}

export interface AuditKey {
  id: string;
  /** Secret as a KeyObject, because OpenSSL takes longer to prepare a key than to authenticate a record. */
  secret: KeyObject;
}

/** Returns the keys of a chain, one for each seal key. The first one authenticates new records. */
export function auditKeys(sealKeys: readonly string[], { namespace, host, tenant, boot }: AuditChainOf): AuditKey[] {
  const purpose = ['audit', namespace, host, tenant, ...(boot === undefined ? [] : [boot])];
  return sealKeys.map((key) => {
    const { deriveKey, keyIds } = createSealer([key]);
    return { id: keyIds[0] ?? '', secret: createSecretKey(deriveKey(purpose)) };
  });
}

/**
 * Returns the line, with its line feed, of an event that follows the record `before`, and the new head of the chain.
 */
export function toAuditLine(event: AuditEvent, before: AuditHead, at: string, key: AuditKey) {
  const n = before.n + 1;
  const record: AuditRecord = { n, at, key: key.id, previous: before.mac, event };
  const text = JSON.stringify(record);
  const mac = macOf(text, key);
  return { line: `{"mac":"${mac}","record":${text}}\n`, head: { n, mac } };
}

/**
 * Parses a line. Returns undefined if it is no audit line. The record is `authentic` if its code was made with one of
 * the keys.
 */
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
