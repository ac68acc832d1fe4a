import { z } from 'zod';
import { durationSchema } from './field-schemas.ts';
import { tenantIdSchema } from './ids.ts';
import { tryJson } from './json-text.ts';
import { type PrefixRule, prefixRuleSchema } from './prefix-rule.ts';

const HIGHEST_WEIGHT = 1_000;
const MOST_TENANTS = 10_000;
const MOST_RULES = 4_096;

const quotaSchema = z.number('must be a number').int('must be a whole number').min(1, 'must be at least 1');

const tenantSchema = z.strictObject(
  {
    name: tenantIdSchema.describe('Name of the tenant'),
    weight: z
      .number('must be a number')
      .positive('must be more than 0')
      .max(HIGHEST_WEIGHT, `must be at most ${HIGHEST_WEIGHT}`)
      .default(1)
      .describe("The tenant's share of the slots while others wait, relative to the weights of the others"),
    maxSessions: quotaSchema
      .optional()
      .describe(
        'Most sessions of the tenant that hold a slot at once; more of them wait. Without it there is no limit',
      ),
    maxQueued: quotaSchema
      .optional()
      .describe(
        'Most commands of the tenant that wait at once; further ones are refused. Without it there is no limit',
      ),
    maxDiskBytes: quotaSchema
      .optional()
      .describe(
        'Bytes that containers of the tenant may have written in all; beyond it further commands are refused. Without it there is no limit',
      ),
    idleTimeoutMs: durationSchema()
      .optional()
      .describe(
        "Longest idle time in ms of the tenant's sessions, whatever their specs say. Without it the spec decides",
      ),
  },
  'must have only these fields: name, weight, maxSessions, maxQueued, maxDiskBytes, idleTimeoutMs',
);

/** Configuration of a whole fleet, which `shellfleet config apply` writes to Redis and every host reads from there. */
export const fleetConfigurationSchema = z
  .strictObject(
    {
      /** Tenants with a weight or a quota of their own. */
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
      /** Rules about commands, which every host applies beside those of its own files. */
      rules: z
        .array(prefixRuleSchema, 'must be a list of rules')
        .max(MOST_RULES, `must have at most ${MOST_RULES} rules`)
        .default([])
        .describe('Rules about commands, which every host applies beside those of its own files'),
      /** Who may answer questions. */
      approvals: z
        .strictObject(
          {
            self: z
              .boolean('must be true or false')
              .default(false)
              .describe('Whether a caller may answer questions about what it submitted itself'),
          },
          'must have only this field: self',
        )
        .optional()
        .describe('Who may answer questions'),
    },
    'must have only these sections: tenants, rules, approvals (those of a host are in SHELLFLEET_CONFIG)',
  )
  .meta({ title: "A fleet's configuration" });

/** Configuration of a whole fleet. Every host uses it. */
export interface FleetConfiguration {
  /** Tenants with a weight or a quota of their own. Others have the defaults. */
  tenants: TenantConfiguration[];
  /** Rules about commands, which every host applies beside those of its own files. */
  rules: PrefixRule[];
  /** Who may answer questions. Absent: the defaults. */
  approvals?: ApprovalsConfiguration | undefined;
}
/** Who may answer questions. */
export interface ApprovalsConfiguration {
  /** Whether a caller may answer questions about what it submitted itself. */
  self: boolean;
}
/** Share and quota of one tenant. */
export interface TenantConfiguration {
  /** Name of the tenant. */
  name: string;
  /** The tenant's share of the slots while others wait, relative to the weights of the others. */
  weight: number;
  /** Most sessions of the tenant that hold a slot at once. Absent: no limit. */
  maxSessions?: number | undefined;
  /** Most commands of the tenant that wait at once. Absent: no limit. */
  maxQueued?: number | undefined;
  /** Bytes that containers of the tenant's sessions may have written in all. Absent: no limit. */
  maxDiskBytes?: number | undefined;
  /** Longest idle time in ms of the tenant's sessions. Absent: that of each session's spec. */
  idleTimeoutMs?: number | undefined;
}
/** The configuration as its author writes it, without the defaults. */
export type FleetConfigurationInput = z.input<typeof fleetConfigurationSchema>;

/** Returns the weights of the tenants that have another one than 1. */
export const weightsOf = ({ tenants }: FleetConfiguration): Readonly<Record<string, number>> =>
  Object.fromEntries(tenants.flatMap(({ name, weight }) => (weight === 1 ? [] : [[name, weight]])));

/** Returns the most sessions of the tenants that have a quota of them. */
export const mostSessionsOf = ({ tenants }: FleetConfiguration): Readonly<Record<string, number>> =>
  Object.fromEntries(
    tenants.flatMap(({ name, maxSessions }) => (maxSessions === undefined ? [] : [[name, maxSessions]])),
  );

/** Returns the longest idle times of the tenants that have one (ms). */
export const idleTimeoutsOf = ({ tenants }: FleetConfiguration): ReadonlyMap<string, number> =>
  new Map(tenants.flatMap(({ name, idleTimeoutMs }) => (idleTimeoutMs === undefined ? [] : [[name, idleTimeoutMs]])));

/** Returns the tenants that have a quota of disk. */
export const tenantsWithDiskQuota = ({ tenants }: FleetConfiguration): readonly string[] =>
  tenants.flatMap(({ name, maxDiskBytes }) => (maxDiskBytes === undefined ? [] : [name]));

const QUOTAS = ['maxSessions', 'maxQueued', 'maxDiskBytes'] as const satisfies readonly (keyof TenantConfiguration)[];
/** Quotas of one tenant. */
export type TenantQuotas = Pick<TenantConfiguration, (typeof QUOTAS)[number]>;

/** Schema of a value of `quotasKey`. */
export const tenantQuotasSchema: z.ZodType<TenantQuotas, string> = z
  .string()
  .transform(tryJson)
  .pipe(
    z.object({
      maxSessions: quotaSchema.optional(),
      maxQueued: quotaSchema.optional(),
      maxDiskBytes: quotaSchema.optional(),
    }),
  );

/** Returns the values of `quotasKey` of the tenants that have quotas. */
export function encodeQuotas({ tenants }: FleetConfiguration): Record<string, string> {
  const withQuotas = tenants.filter((tenant) => QUOTAS.some((quota) => tenant[quota] !== undefined));
  return Object.fromEntries(withQuotas.map((tenant) => [tenant.name, JSON.stringify(tenant, [...QUOTAS])]));
}

/** Schema of the hash `fleetKeys().configuration`. */
export const appliedConfigurationSchema = z.object({
  revision: z.coerce.number().int().min(1),
  configuration: z.string().transform(tryJson).pipe(fleetConfigurationSchema),
  appliedBy: z.string(),
  appliedAt: z.iso.datetime(),
});

/** The newest configuration that was applied to the fleet. */
export interface AppliedConfiguration {
  /** Number that rises with each configuration that is applied. */
  revision: number;
  /** The configuration, with its defaults. */
  configuration: FleetConfiguration;
  /** Name of the person or program that applied it, as the client gave it. */
  appliedBy: string;
  /** Time at which it was applied; ISO 8601. */
  appliedAt: string;
}
