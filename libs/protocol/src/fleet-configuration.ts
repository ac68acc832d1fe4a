import { z } from 'zod';
import { tenantIdSchema } from './ids.ts';
import { tryJson } from './json-text.ts';

const HIGHEST_WEIGHT = 1_000;
const MOST_TENANTS = 10_000;

const tenantSchema = z.strictObject(
  {
    name: tenantIdSchema.describe('Name of the tenant'),
    weight: z
      .number('must be a number')
      .positive('must be more than 0')
      .max(HIGHEST_WEIGHT, `must be at most ${HIGHEST_WEIGHT}`)
      .default(1)
      .describe("The tenant's share of the slots while others wait, relative to the weights of the others"),
    maxSessions: z
      .number('must be a number')
      .int('must be a whole number')
      .min(1, 'must be at least 1')
      .optional()
      .describe(
        'Most sessions of the tenant that hold a slot at once; more of them wait. Without it there is no limit',
      ),
  },
  'must have only these fields: name, weight, maxSessions',
);

/** Configuration of a whole fleet, which `shellfleet config apply` writes to Redis and every host reads from there. */
export const fleetConfigurationSchema = z
  .strictObject(
    {
      tenants: z
        .array(tenantSchema, 'must be a list of tenants')
        .max(MOST_TENANTS, `must have at most ${MOST_TENANTS} tenants`)
        .superRefine((tenants, context) => {
          const names = new Set<string>();
          for (const [index, { name }] of tenants.entries()) {
            if (names.has(name))
              context.addIssue({ code: 'custom', path: [index, 'name'], message: 'is listed twice' });
            names.add(name);
          }
        })
        .default([])
        .describe('Tenants with a weight or a quota of their own; others have the defaults'),
    },
    'must have only these sections: tenants',
  )
  .meta({ title: "A fleet's configuration" });

export type FleetConfiguration = z.output<typeof fleetConfigurationSchema>;

/** Share and quota of one tenant. */
export interface TenantShare {
  weight: number;
  /** Most sessions that hold a slot at once. Undefined: no limit. */
  maxSessions?: number | undefined;
}

/** Returns the share of a tenant. A tenant that the configuration does not list has the defaults. */
export function shareOf({ tenants }: FleetConfiguration, tenant: string): TenantShare {
  const { weight = 1, maxSessions } = tenants.find(({ name }) => name === tenant) ?? {};
  return { weight, maxSessions };
}

/** Hash `fleetKeys().configuration`: the newest configuration of the fleet. */
export const appliedConfigurationSchema = z.object({
  /** Rises with each `config apply`. */
  revision: z.coerce.number().int().min(1),
  configuration: z.string().transform(tryJson).pipe(fleetConfigurationSchema),
  /** Name of the person or program that applied it, as the client gave it. */
  appliedBy: z.string(),
  /** When it was applied; ISO 8601. */
  appliedAt: z.iso.datetime(),
});
export type AppliedConfiguration = z.output<typeof appliedConfigurationSchema>;
