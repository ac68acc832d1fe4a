import { randomBytes } from 'node:crypto';
import {
  type ApiKeyInfo,
  type ApiKeyRecord,
  accessKeys,
  apiKeyNameSchema,
  apiKeyText,
  parseOrThrow,
  type Scope,
  scopesSchema,
  tenantIdSchema,
} from '@shellfleet/protocol';
import { throwQueueError } from '@shellfleet/redis';
import { sealPlace } from '@shellfleet/sealing';
import { z } from 'zod';
import { nameOfThisUser } from '../connection/name-of-this-user.ts';
import { hashOfKey, toKeyInfo } from './key-info.ts';
import type { KeysContext } from './keys-context.ts';

/** What a new API key is and may do. */
export interface CreateKeyOptions {
  /**
   * Name for people, such as that of the program that uses the key. Keys may have equal names.
   * @default the user and the machine of this process
   */
  name?: string | undefined;
  /** What the key may do. */
  scopes: Scope[];
  /**
   * Tenant whose sessions the key reaches.
   * @default the tenant of the fleet object
   */
  tenant?: string | undefined;
  /**
   * When the key expires.
   * @default it works until it is revoked
   */
  expiresAt?: Date | undefined;
}

/** A new API key. */
export interface CreatedApiKey extends ApiKeyInfo {
  /** Text of the key, which cannot be read again. */
  key: string;
}

export async function createKey(context: KeysContext, given: CreateKeyOptions): Promise<CreatedApiKey> {
  const now = Date.now();
  const options = parseOrThrow(toSchema(now), given, 'COMMAND_INVALID', 'The API key');
  const { name = toKeyName(nameOfThisUser()), scopes, tenant = context.tenant, expiresAt } = options;
  const id = randomBytes(8).toString('hex');
  const key = apiKeyText(id, randomBytes(32).toString('base64url'));
  const stored: ApiKeyRecord = {
    ...{ name, tenant: tenantIdSchema.parse(tenant), scopes, hash: hashOfKey(key).toString('hex'), createdAt: now },
    ...(expiresAt === undefined ? {} : { expiresAt: expiresAt.getTime() }),
  };
  const { redis, namespace, sealer } = context;
  const sealed = sealer.seal(JSON.stringify(stored), sealPlace('api-key', { namespace }, { apiKey: id }));
  await redis.hset(accessKeys(namespace).apiKeys, id, sealed).catch(throwQueueError);
  return { key, ...toKeyInfo(id, stored) };
}

const toSchema = (now: number) =>
  z.strictObject(
    {
      name: apiKeyNameSchema.optional(),
      scopes: scopesSchema,
      tenant: tenantIdSchema.optional(),
      expiresAt: z
        .date('must be a Date')
        .refine((date) => date.getTime() > now, 'must be in the future')
        .optional(),
    },
    'must be { name?, scopes, tenant?, expiresAt? }',
  );

/** Replaces what the name of a key may not have. */
const toKeyName = (text: string): string => text.replaceAll(/[^A-Za-z0-9._@-]/g, '-').slice(0, 64);
