import { type Repetition, repeat } from '@shellfleet/concurrency';
import { writeTenantUses } from '@shellfleet/redis';
import type { SessionHost } from '../run/host-services.ts';
import type { FleetConfigurationWatch } from './watch-fleet-configuration.ts';

/** Interval of measurements, and of reports even without changes: Redis may have lost the last one. */
const INTERVAL_MS = 5_000;

/** Measures what each tenant uses on this host, and reports it, now and regularly until closed. */
export function reportUsesRegularly(
  { redis, namespace, hostId, sandboxes, uses, logger }: SessionHost,
  { diskQuotas }: Pick<FleetConfigurationWatch, 'diskQuotas'>,
): Repetition {
  const report = async () => {
    sandboxes.setDiskQuotas?.(diskQuotas().length > 0);
    await uses.measure();
    await writeTenantUses(redis, namespace, hostId, uses.read());
  };
  const rounds = repeat(report, {
    everyMs: INTERVAL_MS,
    onError: (err) => logger.warn({ err }, 'uses.report-failed'),
  });
  void rounds.now();
  return rounds;
}
