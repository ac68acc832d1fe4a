import { createHash } from 'node:crypto';
import {
  type ApiKeyInfo,
  type ApiKeyRecord,
  isShellfleetError,
  parseApiKeyRecord,
  ShellfleetError,
} from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';

/** Returns what is stored in place of the text of a key. The text has 256 random bits, so a fast hash is sufficient. */
export const hashOfKey = (key: string): Buffer => createHash('sha256').update(key).digest();

/** Opens a stored key. Throws SEAL_KEY_UNKNOWN if it was changed, or was sealed with a key that this process lacks. */
export function openKey(sealer: Sealer, namespace: string, id: string, sealed: string): ApiKeyRecord {
  let cause: unknown;
  try {
    const stored = parseApiKeyRecord(sealer.open(sealed, sealPlace('api-key', { namespace }, { apiKey: id })));
    if (stored !== undefined) return stored;
  } catch (error) {
    if (!isShellfleetError(error) || error.code !== 'SEAL_KEY_UNKNOWN' || sealer.keyIds.length === 0) throw error;
    cause = error;
  }
  throw new ShellfleetError(
    'SEAL_KEY_UNKNOWN',
    `The API key ${id} does not open: it was sealed with a key that this process does not have, or it was changed. If no process has that key any longer, revoke the API key by its id and make a new one.`,
    { apiKey: id },
    { cause },
  );
}

export const hasKeyExpired = ({ expiresAt }: ApiKeyRecord): boolean =>
  expiresAt !== undefined && expiresAt <= Date.now();

export function toKeyInfo(id: string, stored: ApiKeyRecord, usedAt?: string | null): ApiKeyInfo {
  const { name, tenant, scopes, createdAt, expiresAt } = stored;
  return {
    ...{ id, name, tenant, scopes, createdAt: toText(createdAt) },
    ...(expiresAt === undefined ? {} : { expiresAt: toText(expiresAt) }),
    ...(/^\d{1,15}$/.test(usedAt ?? '') ? { lastUsedAt: toText(Number(usedAt)) } : {}),
  };
}

const toText = (ms: number): string => new Date(ms).toISOString();
