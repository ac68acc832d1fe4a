import { sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import type { AdmissionInput } from './admission.ts';
import type { Rules } from './create-admission.ts';
import { requireFleetRules } from './require-fleet-rules.ts';

const spec = sessionSpecSchema.parse({});
const NO_RULES: Rules = {
  digest: '',
  decide: () => ({ type: 'allow' }),
  decideOpening: () => ({ type: 'allow' }),
  decidesByPath: () => false,
  refuseTerminal: () => undefined,
  decideTool: () => ({ type: 'allow' }),
};
const operation = { name: 'stat', path: '/workspace' } as const;
const reason = "this host cannot read the rules of the fleet's configuration yet";

describe('the rules of a host that does not know those of its fleet', () => {
  test('let nothing start, and say why', () => {
    const rules = requireFleetRules(NO_RULES, { areKnown: false });
    expect(rules.digest).not.toBe('');
    expect(() => rules.decide({ spec } as AdmissionInput)).toThrow(`Nothing was run, because ${reason}`);
    expect(rules.decideOpening(spec)).toEqual({ type: 'forbid', reason });
    expect(rules.decideTool('add')).toEqual({ type: 'forbid', reason });
    expect(rules.refuseTerminal(spec)).toBe(reason);
    expect(rules.decidesByPath(operation, spec)).toBe(true);
  });

  test('are those of the host from when it knows them', () => {
    const fleet = { areKnown: false };
    const rules = requireFleetRules(NO_RULES, fleet);
    fleet.areKnown = true;
    expect(rules.digest).toBe('');
    expect(rules.decide({ spec } as AdmissionInput)).toEqual({ type: 'allow' });
    expect(rules.decideOpening(spec)).toEqual({ type: 'allow' });
    expect(rules.decideTool('add')).toEqual({ type: 'allow' });
    expect(rules.refuseTerminal(spec)).toBeUndefined();
    expect(rules.decidesByPath(operation, spec)).toBe(false);
  });
});
