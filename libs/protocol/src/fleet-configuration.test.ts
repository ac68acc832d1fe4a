import { describe, expect, test } from 'vitest';
import { toFieldIssues } from './field-issues.ts';
import {
  encodeQuotas,
  fleetConfigurationSchema,
  mostSessionsOf,
  tenantQuotasSchema,
  weightsOf,
} from './fleet-configuration.ts';

describe("a fleet's configuration", () => {
  test('gives a tenant weight 1 and no quota unless it lists others', () => {
    const configuration = fleetConfigurationSchema.parse({
      tenants: [{ name: 'builds', weight: 2.5, maxSessions: 40 }, { name: 'nightly' }],
    });
    expect(weightsOf(configuration)).toEqual({ builds: 2.5 });
    expect(mostSessionsOf(configuration)).toEqual({ builds: 40 });
    const { builds, ...others } = encodeQuotas(configuration);
    expect([tenantQuotasSchema.parse(builds), others]).toEqual([{ maxSessions: 40 }, {}]);
  });

  test.each([
    [{ tenants: [{ name: 'a', weight: 0 }] }, 'tenants.0.weight', 'must be more than 0'],
    [{ tenants: [{ name: 'a', weight: 1_001 }] }, 'tenants.0.weight', 'must be at most 1000'],
    [{ tenants: [{ name: 'a', maxSessions: 0 }] }, 'tenants.0.maxSessions', 'must be at least 1'],
    [{ tenants: [{ name: 'a', maxSessions: 1.5 }] }, 'tenants.0.maxSessions', 'must be a whole number'],
    [{ tenants: [{ name: 'a b' }] }, 'tenants.0.name', 'may only hold A-Z a-z 0-9 . _ -'],
    [{ tenants: [{ name: 'a' }, { name: 'a' }] }, 'tenants.1.name', 'is listed twice'],
    [{ tenants: [{ name: 'a', wieght: 2 }] }, 'tenants.0.wieght', 'unknown field'],
    [{ rules: [{ pattern: ['git'], decision: 'maybe' }] }, 'rules.0.decision', "must be 'allow', 'prompt' or 'forbid'"],
    [{ slots: 4 }, 'slots', 'unknown field'],
  ])('refuses %j with the field and the reason', (value, path, message) => {
    const { error } = fleetConfigurationSchema.safeParse(value);
    expect(error?.issues.flatMap(toFieldIssues)).toEqual([{ path, message }]);
  });
});
