import { repeat } from '@shellfleet/concurrency';
import {
  type AppliedConfiguration,
  ensureShellfleetError,
  type FleetConfiguration,
  idleTimeoutsOf,
  isShellfleetError,
  mostSessionsOf,
  tenantsWithDiskQuota,
  weightsOf,
} from '@shellfleet/protocol';
import { isNewestConfiguration, readFleetConfiguration } from '@shellfleet/redis';
import type { HostServices } from '../run/host-services.ts';

// FLEET-CONFIGURATION-1. A host that cannot use the newest configuration keeps the last one that it could use, and
//     reports why: in its log once, and in every heartbeat.
// FLEET-CONFIGURATION-2. A host that could use none since it started, and has not seen that there is none, does not
//     know the rules of the fleet. It takes no session or tool call, and starts no command in what it adopted.

const NO_CONFIGURATION: FleetConfiguration = { tenants: [], rules: [] };

/** Interval of reads, for changes that no wake-up has announced. */
const INTERVAL_MS = 2_000;

/** The fleet's configuration, as this host has read it last. */
export interface FleetConfigurationWatch {
  /** Weights of the tenants that have another one than 1. */
  weights(): Readonly<Record<string, number>>;
  /** Most sessions of the tenants that have a quota. */
  quotas(): Readonly<Record<string, number>>;
  /** Longest idle times of the tenants that have one (ms). */
  idleTimeouts(): ReadonlyMap<string, number>;
  /** Tenants with a quota of disk. */
  diskQuotas(): readonly string[];
  /** Revision of the newest configuration that this host can use; 0 for the defaults. */
  readonly revision: number;
  /** Why this host does not know the rules of its fleet, one sentence. Empty when it knows them. */
  problems(): string[];
  /** Warnings for the operator, one sentence each. */
  warnings(): string[];
  /** Reads the configuration now. Never rejects. */
  look(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Reads the configuration, and again regularly until closed. Resolves after the first read. `use` receives each new
 * one before it holds, and throws if it cannot be used.
 */
export async function watchFleetConfiguration(
  { redis, fleet, logger }: Pick<HostServices, 'redis' | 'fleet' | 'logger'>,
  use: (configuration: FleetConfiguration) => void,
): Promise<FleetConfigurationWatch> {
  let newest: AppliedConfiguration | undefined;
  let tenants = toTenants(NO_CONFIGURATION);
  let problem: string | undefined;
  /** Whether a configuration holds, or there was none. */
  let isKnown = false;
  const refuse = (found: string) => {
    if (found !== problem) logger.error({ problem: found, revision: newest?.revision ?? 0 }, 'configuration.refused');
    problem = found;
  };
  const look = async () => {
    const isNewest = newest !== undefined && (await isNewestConfiguration(redis, fleet, newest));
    const applied = isNewest ? newest : await readFleetConfiguration(redis, fleet);
    if (applied === undefined && newest !== undefined)
      return refuse("The fleet's configuration is no longer in Redis: apply it again");
    if (!isNewest && (applied !== undefined || !isKnown)) {
      try {
        use(applied?.configuration ?? NO_CONFIGURATION);
      } catch (error) {
        const { message } = ensureShellfleetError(error);
        return refuse(`Revision ${applied?.revision} of the fleet's configuration cannot be used: ${message}`);
      }
    }
    problem = undefined;
    isKnown = true;
    if (applied === undefined || isNewest) return;
    newest = applied;
    tenants = toTenants(applied.configuration);
    logger.info({ revision: applied.revision, appliedBy: applied.appliedBy }, 'configuration.read');
  };
  const onError = (error: unknown) => {
    // A read without Redis fails too. Then no heartbeat could report it.
    if (isShellfleetError(error) && error.code === 'COMMAND_INVALID') refuse(error.message);
  };
  const rounds = repeat(look, { everyMs: INTERVAL_MS, onError });
  await rounds.now();
  const describeKept = () => (newest === undefined ? 'the defaults hold' : `revision ${newest.revision} holds`);
  return {
    weights: () => tenants.weights,
    quotas: () => tenants.quotas,
    idleTimeouts: () => tenants.idleTimeouts,
    diskQuotas: () => tenants.diskQuotas,
    get revision() {
      return newest?.revision ?? 0;
    },
    problems: () =>
      isKnown
        ? []
        : [
            `${problem ?? "The fleet's configuration was not read yet"}. Until this host can use one, it takes no session.`,
          ],
    warnings: () => (isKnown && problem !== undefined ? [`${problem}. Until then, ${describeKept()}.`] : []),
    look: rounds.now,
    close: rounds.close,
  };
}

const toTenants = (configuration: FleetConfiguration) => ({
  weights: weightsOf(configuration),
  quotas: mostSessionsOf(configuration),
  idleTimeouts: idleTimeoutsOf(configuration),
  diskQuotas: tenantsWithDiskQuota(configuration),
});
