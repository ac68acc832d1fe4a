import { ShellfleetError } from '@shellfleet/protocol';
import type { Rules } from './create-admission.ts';

// FLEET-RULES-1. A host that has not been able to use any configuration of its fleet since it started does not know all
//     rules about commands. Then it decides about nothing: what it adopted runs on, and what would start ends with an
//     error. It never applies fewer rules than the fleet has.

const REASON = "this host cannot read the rules of the fleet's configuration yet";

/** Lets nothing start while the rules of the fleet's configuration are not known. */
export function requireFleetRules(rules: Rules, fleet: { readonly areKnown: boolean }): Rules {
  return {
    get digest() {
      return fleet.areKnown ? rules.digest : 'unknown';
    },
    decide(input, granted) {
      if (fleet.areKnown) return rules.decide(input, granted);
      throw new ShellfleetError(
        'RULES_INVALID',
        `Nothing was run, because ${REASON}. \`shellfleet hosts ls\` has the problem. Submit the command again when it is solved.`,
        { source: "the fleet's configuration", issues: [{ path: 'rules', message: 'cannot be read' }] },
      );
    },
    decideOpening: (spec) => (fleet.areKnown ? rules.decideOpening(spec) : { type: 'forbid', reason: REASON }),
    decidesByPath: (operation, spec) => !fleet.areKnown || rules.decidesByPath(operation, spec),
    refuseTerminal: (spec) => (fleet.areKnown ? rules.refuseTerminal(spec) : REASON),
    decideTool: (name) => (fleet.areKnown ? rules.decideTool(name) : { type: 'forbid', reason: REASON }),
  };
}
