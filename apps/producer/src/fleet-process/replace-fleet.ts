import { setTimeout as delay } from 'node:timers/promises';
import type { FleetHosts } from '@shellfleet/client';
import { endFleet } from './down.ts';
import { type FleetRecord, readFleetRecord } from './fleet-record.ts';
import { connectToOwn, count, describeUse, hostsOf, readUse } from './fleet-use.ts';

// REPLACE-1. An interruption while a fleet is drained leaves it as it was, and its hosts take sessions again.
// REPLACE-2. Requests to drain are withdrawn by this process, or expire, so that no later worker of the host finds
//            them.

const POLL_MS = 500;
const REPORT_EVERY_MS = 5_000;
/** Time for the end of the fleet and the start of the next one. */
const MARGIN_MS = 120_000;

interface Replacement {
  env: NodeJS.ProcessEnv;
  report: (line: string) => void;
  signal: AbortSignal;
  /** Time for running commands. */
  drainMs: number;
}

/** Drains and ends the fleet. Returns the hosts whose requests to drain the next fleet must withdraw. */
export async function replaceFleet(
  record: FleetRecord,
  { env, report, signal, drainMs }: Replacement,
): Promise<string[]> {
  const fleet = await connectToOwn(env).catch(() => undefined);
  if (fleet === undefined) {
    report(
      `The fleet of version ${record.version} cannot be reached, so it is replaced without waiting for its commands.`,
    );
    await endFleet(env);
    return [];
  }
  const drained: string[] = [];
  try {
    await drain(fleet, record, drained, { report, signal, drainMs });
    const isTheSame = (await readFleetRecord(env))?.supervisor.pid === record.supervisor.pid;
    if (isTheSame) {
      report(`Ending it: ${describeUse(await readUse(fleet, record))}.`);
      await endFleet(env);
    }
    return drained;
  } catch (error) {
    for (const host of drained) await fleet.drainHost(host, { undo: true }).catch(() => {});
    throw error;
  } finally {
    await fleet.close();
  }
}

/** Drains the hosts, until no command runs or the time is over. Adds each drained host to `drained`. */
async function drain(
  fleet: FleetHosts,
  record: FleetRecord,
  drained: string[],
  { report, signal, drainMs }: Omit<Replacement, 'env'>,
): Promise<void> {
  const own = hostsOf(record);
  for (const { id, state } of await fleet.hosts()) {
    // A host that an operator drains is skipped, so that the operator's request stays.
    if (!own.includes(id) || state !== 'up') continue;
    await fleet.drainHost(id, { forMs: drainMs + MARGIN_MS });
    drained.push(id);
  }
  report(`Replacing the fleet of version ${record.version}: it takes no new session. ${describeUse(await readUse(fleet, record))}.
Commands that run have ${Math.ceil(drainMs / 1_000)} s to finish (--drain-timeout), then its sessions end. Ctrl-C before that leaves it as it is.`);
  const endsAt = Date.now() + drainMs;
  for (let reportedAt = Date.now(); ; ) {
    const { commands } = await readUse(fleet, record);
    if (commands === 0) return;
    const now = Date.now();
    if (now >= endsAt) return report(`${count(commands, 'command')} did not finish in time: cancelled with the fleet.`);
    if (now - reportedAt >= REPORT_EVERY_MS) {
      reportedAt = now;
      report(`Waiting for ${count(commands, 'running command')} (${Math.ceil((endsAt - now) / 1_000)} s left)`);
    }
    await delay(Math.min(POLL_MS, endsAt - now), undefined, { signal });
  }
}
