import { type WiderSettings, widenSandbox } from '@shellfleet/policy';
import type { ResolvedSessionSpec } from '@shellfleet/protocol';
import { noWiderSandbox } from '../admission/no-wider-sandbox.ts';
import type { Outside } from '../run/outside.ts';

/** `settings`: undefined where the operator of this host lets nothing out. */
export function createOutside(spec: ResolvedSessionSpec, settings: WiderSettings | undefined): Outside {
  const wider = widenSandbox(spec, settings);
  return {
    refusal: 'refusal' in wider ? wider.refusal : 'this host has no wider sandbox',
    run: () => Promise.reject(noWiderSandbox()),
  };
}
