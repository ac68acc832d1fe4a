import { findDocker, findLeftovers, type MachinePart } from '@shellfleet/setup';
import { findOwnFleet } from './own-fleet.ts';

/** Finds other fleets of the namespace of this environment that have containers on the engine of this machine. */
export async function examineOtherFleets(env: NodeJS.ProcessEnv): Promise<MachinePart[]> {
  const engine = await findDocker(env);
  if (engine === undefined) return [];
  const own = await findOwnFleet({}, env);
  const found = await findLeftovers(engine.endpoint, {
    liveFleetIds: [],
    namespace: own.namespace,
  }).catch(() => []);
  const counts = new Map<string, { all: number; nobodys: number }>();
  for (const { kind, fleetId, owner } of found) {
    if (kind !== 'container' || (fleetId !== undefined && fleetId === own.fleetId)) continue;
    const whose = fleetId ?? 'a version without identities';
    const count = counts.get(whose) ?? { all: 0, nobodys: 0 };
    counts.set(whose, { all: count.all + 1, nobodys: count.nobodys + (owner === undefined ? 1 : 0) });
  }
  if (counts.size === 0) return [];
  const texts = [...counts].map(
    ([whose, { all, nobodys }]) =>
      `${whose}: ${all} ${all === 1 ? 'container' : 'containers'}, of which nobody owns ${nobodys}`,
  );
  const fix = 'shellfleet prune, which removes what nobody owns';
  const hasNobodys = [...counts.values()].some(({ nobodys }) => nobodys > 0);
  return [
    {
      name: 'other fleets',
      state: 'present',
      detail: `of the namespace ${own.namespace}: ${texts.join('; ')}`,
      ...(hasNobodys ? { fix } : {}),
    },
  ];
}
