import { z } from 'zod';
import { tenantIdSchema } from './ids.ts';
import { tryJson } from './json-text.ts';

/** What a caller may do: run commands, read, answer questions, and operate the fleet. */
export const SCOPES = ['submit', 'read', 'approve', 'admin'] as const;
export type Scope = (typeof SCOPES)[number];
export const scopeSchema = z.enum(SCOPES, "must be 'submit', 'read', 'approve' or 'admin'");

const ID_HEX = 16;
const SECRET_CHARS = 43;
const API_KEY_PATTERN = new RegExp(`^sfk_([0-9a-f]{${ID_HEX}})_([A-Za-z0-9_-]{${SECRET_CHARS}})$`);

/** Returns the text of an API key. `id` is 16 hexadecimal digits, and `secret` is 32 bytes as base64url. */
export const apiKeyText = (id: string, secret: string) => `sfk_${id}_${secret}`;

/** Returns the id of an API key. Returns undefined for text of another form. */
export const apiKeyIdOf = (key: string): string | undefined => API_KEY_PATTERN.exec(key)?.[1];

/** Name of an API key, by which people see who submitted or answered. It never looks like the id of a key. */
export const apiKeyNameSchema = z
  .string('must be a string')
  .regex(/^[A-Za-z0-9._@-]{1,64}$/, 'must be 1 to 64 characters of A-Z a-z 0-9 . _ @ -')
  .refine((name) => !/^[0-9a-f]{16}$/.test(name), 'must not look like the id of a key');

export const scopesSchema = z
  .array(scopeSchema, 'must be a list of scopes')
  .min(1, 'must hold a scope')
  .transform((scopes) => SCOPES.filter((scope) => scopes.includes(scope)));

const recordSchema = z.object({
  name: apiKeyNameSchema,
  tenant: tenantIdSchema,
  scopes: scopesSchema,
  hash: z.string().regex(/^[0-9a-f]{64}$/),
  createdAt: z.number(),
  expiresAt: z.number().optional(),
});

/** What Redis stores of an API key, sealed: SHA-256 (hex) of its text, and times in ms. */
export type ApiKeyRecord = z.infer<typeof recordSchema>;

/** Parses what Redis stores of an API key. Returns undefined for other text. */
export const parseApiKeyRecord = (text: string): ApiKeyRecord | undefined => recordSchema.safeParse(tryJson(text)).data;

/** An API key without its secret part. */
export interface ApiKeyInfo {
  /** Second part of the key's text, which identifies it. */
  id: string;
  /** Name for people. Keys may have equal names. */
  name: string;
  /** Tenant whose sessions the key reaches. */
  tenant: string;
  /** What the key may do. */
  scopes: Scope[];
  /** When it was made, in ISO 8601. */
  createdAt: string;
  /** When the key expires, in ISO 8601. Absent: it works until it is revoked. */
  expiresAt?: string;
  /** When it was used last, in ISO 8601, up to a minute late. Absent: never. */
  lastUsedAt?: string;
}
