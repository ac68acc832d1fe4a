import { createHash, type KeyObject } from 'node:crypto';
import { type KnownKeys, keyIdOf, parsePublicKey } from '@shellfleet/sealing';
import { z } from 'zod';

// `keys:`, who may submit and who may answer. Without it, everyone with a seal key and access to Redis may do both.

const keySchema = z.strictObject(
  {
    id: z
      .string('must be a string')
      .regex(/^[A-Za-z0-9._@-]{1,128}$/, 'must be 1 to 128 of A-Z a-z 0-9 . _ @ -')
      .describe('Who owns the key; one owner may have several'),
    tenants: z
      .array(z.string('must be a string').min(1, 'must not be empty'), 'must be a list of tenants')
      .min(1, "must name a tenant, or '*'")
      .describe("Tenants that it may sign for; '*': all"),
    publicKey: z
      .string('must be a string')
      .transform((text, context): KeyObject => {
        const key = parsePublicKey(text);
        if (key !== undefined) return key;
        context.addIssue({ code: 'custom', message: 'must be an Ed25519 public key as PEM or base64' });
        return z.NEVER;
      })
      .describe('An Ed25519 public key as PEM or base64'),
  },
  'must have only these fields: id, tenants, publicKey',
);
const listSchema = z.array(keySchema, 'must be a list of keys');

export const keysSchema = z
  .strictObject(
    {
      producers: listSchema.default([]).describe('Keys that may sign commands and sessions'),
      approvers: listSchema.default([]).describe('Keys that may sign answers to questions'),
    },
    'must have only these fields: producers, approvers',
  )
  .superRefine(({ producers, approvers }, context) => {
    const seen = new Set<string>();
    for (const [list, keys] of Object.entries({ producers, approvers }))
      for (const [index, { publicKey }] of keys.entries()) {
        const keyId = keyIdOf(publicKey);
        // A key that submits must not answer.
        if (seen.has(keyId))
          context.addIssue({
            code: 'custom',
            path: [list, index, 'publicKey'],
            message: 'is listed twice; a key has one owner, and is either a producer’s or an approver’s',
          });
        seen.add(keyId);
      }
  });

export type KeysSection = z.output<typeof keysSchema>;

/** Returns a digest of all data that verifies signatures. When it changes, all waiting entries are decided again. */
export function digestOfKeys(keys: KnownKeys): string {
  const listed = [keys.producers, keys.approvers].map((list) =>
    list.map(({ id, tenants, publicKey }) => [id, tenants, keyIdOf(publicKey)]),
  );
  return createHash('sha256').update(JSON.stringify(listed)).digest('base64url');
}
