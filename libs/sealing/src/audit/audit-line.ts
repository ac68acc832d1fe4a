import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type AuditEvent, type AuditHead, type AuditRecord, auditRecordSchema, tryJson } from '@shellfleet/protocol';
import { createSealer } from '../seal.ts';

// One line of an audit file: `{"mac":"…","record":{…}}`. The code authenticates exactly the characters of the record, which hold the code of
// the record before it.

/** Before the first record. */
export const CHAIN_START: AuditHead = { n: 0, mac: '' };

const LINE = /^\{"mac":"([A-Za-z0-9_-]{43})","record":(\{.*\})\}$/s;

/** Whose chain it is. */
export interface AuditChainOf {
  namespace: string;
  host: string;
  tenant: string;
}

export interface AuditKey {
  id: string;
  /** Made once: OpenSSL takes longer to prepare the bytes of a key than to authenticate a record. */
  secret: KeyObject;
}

/** The keys of a chain, one for each seal key; the first one authenticates new records. */
export function auditKeys(sealKeys: readonly string[], { namespace, host, tenant }: AuditChainOf): AuditKey[] {
  return sealKeys.map((key) => {
    const { deriveKey, keyIds } = createSealer([key]);
    return { id: keyIds[0] ?? '', secret: createSecretKey(deriveKey(['audit', namespace, host, tenant])) };
  });
}

/** The line of an event that follows `before`, with its line feed, and the head of the chain after it. */
export function toAuditLine(event: AuditEvent, before: AuditHead, at: string, key: AuditKey) {
  const n = before.n + 1;
  const record: AuditRecord = { n, at, key: key.id, previous: before.mac, event };
  const text = JSON.stringify(record);
  const mac = macOf(text, key);
  return { line: `{"mac":"${mac}","record":${text}}\n`, head: { n, mac } };
}

/** Undefined when it is not a line of an audit file. `authentic`: one of the keys made its code. */
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
