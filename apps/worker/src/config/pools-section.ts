import { imageNameSchema, limitsSchema } from '@shellfleet/protocol';
import { z } from 'zod';

const count = z.int('must be a whole number').min(0, 'must be at least 0');

const poolSchema = z
  .strictObject(
    {
      image: imageNameSchema
        .default('default')
        .describe('Image that sessions ask for; default: that of sessions which name none'),
      policy: z
        .enum(['docker', 'kubernetes'], "must be 'docker' or 'kubernetes'")
        .default('docker')
        .describe('Execution policy of the sessions'),
      limits: limitsSchema.default({}).describe('Limits that sessions ask for; default: the usual ones'),
      network: z
        .enum(['restricted', 'full'], "must be 'restricted' or 'full'")
        .default('restricted')
        .describe('Network that sessions ask for'),
      min: count.default(0).describe('Sandboxes that are ready while no session waits; default: 0'),
      max: count.describe('Most sandboxes that are ready'),
    },
    'must have only these fields: image, policy, limits, network, min, max',
  )
  .refine(({ min, max }) => min <= max, { path: ['min'], error: 'must be at most max' });
export type PoolSettings = z.output<typeof poolSchema>;

/** `pools:`, the sandboxes that are ready before a session asks for one. */
export const poolsSchema = z
  .array(poolSchema, 'must be a list of pools')
  .refine(areDifferent, 'must have no two pools with the same policy, image, limits and network');

function areDifferent(pools: PoolSettings[]): boolean {
  const keys = pools.map(({ policy, image, network, limits }) =>
    JSON.stringify([policy, image, network, Object.entries(limits).sort()]),
  );
  return new Set(keys).size === keys.length;
}
