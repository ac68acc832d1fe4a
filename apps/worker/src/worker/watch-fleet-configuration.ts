import { repeat } from '@shellfleet/concurrency';
import {
  type AppliedConfiguration,
  type FleetConfiguration,
  fleetConfigurationSchema,
  isShellfleetError,
} from '@shellfleet/protocol';
import { readFleetConfiguration } from '@shellfleet/redis';
import type { HostServices } from '../run/host-services.ts';

// FLEET-CONFIGURATION-1. A host that cannot use the newest configuration keeps the last one that it could use, and
// reports why: in its log once, and in every heartbeat. Without an earlier one it has the defaults.

/** Interval of reads, for changes that no wake-up has announced. */
const INTERVAL_MS = 2_000;

/** The fleet's configuration, as this host has read it last. */
export interface FleetConfigurationWatch {
  /** Newest configuration that this host can use. */
  readonly current: FleetConfiguration;
  /** Revision of `current`; 0 for the defaults. */
  readonly revision: number;
  /** Warnings for the operator, one sentence each. */
  warnings(): string[];
  /** Reads the configuration now. Never rejects. */
  look(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the configuration, and again regularly until closed. Resolves after the first read. */
export async function watchFleetConfiguration({
  redis,
  fleet,
  logger,
}: Pick<HostServices, 'redis' | 'fleet' | 'logger'>): Promise<FleetConfigurationWatch> {
  const defaults = fleetConfigurationSchema.parse({});
  let newest: AppliedConfiguration | undefined;
  let problem: string | undefined;
  const refuse = (found: string) => {
    if (found !== problem) logger.error({ problem: found, revision: newest?.revision ?? 0 }, 'configuration.refused');
    problem = found;
  };
  const look = async () => {
    const applied = await readFleetConfiguration(redis, fleet);
    if (applied === undefined && newest !== undefined)
      return refuse("The fleet's configuration is no longer in Redis: apply it again");
    problem = undefined;
    // Revisions begin again if Redis loses them.
    if (applied?.revision === newest?.revision && applied?.appliedAt === newest?.appliedAt) return;
    newest = applied;
    logger.info({ revision: applied?.revision, appliedBy: applied?.appliedBy }, 'configuration.read');
  };
  const onError = (error: unknown) => {
    // A read without Redis fails too. Then no heartbeat could report it.
    if (isShellfleetError(error) && error.code === 'COMMAND_INVALID') refuse(error.message);
  };
  const rounds = repeat(look, { everyMs: INTERVAL_MS, onError });
  await rounds.now();
  const describeKept = () => (newest === undefined ? 'the defaults hold' : `revision ${newest.revision} holds`);
  return {
    get current() {
      return newest?.configuration ?? defaults;
    },
    get revision() {
      return newest?.revision ?? 0;
    },
    warnings: () => (problem === undefined ? [] : [`${problem}. Until then, ${describeKept()}.`]),
    look: rounds.now,
    close: rounds.close,
  };
}
