import { noteLoss, recordRetention } from '@shellfleet/redis';
import type { Heartbeat } from '../lease/heartbeat.ts';
import { lossOf, type Settling } from '../lease/settling.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { HostedSessions } from './hosted-sessions.ts';

interface Recovering {
  host: SessionHost;
  sessions: HostedSessions;
  heartbeat: Heartbeat;
  settling: Settling;
}

/** Renews the leases after an outage, before all other calls. Declares this host's sessions to a replaced Redis. */
export function declareAfterReconnection({ host, sessions, heartbeat, settling }: Recovering): void {
  const { connected, fleet, namespace, hostId, settings, jobs, leases, logger } = host;
  const { history } = connected;
  let declared = history.changes;
  // Declared outside of the recovery, so that a recovery that is repeated after its first heartbeat keeps the value.
  let hostsLost = false;
  connected.recoverFirst(async (direct) => {
    const lastBeatAt = heartbeat.lastAt;
    const loss = lossOf(await direct.zscore(fleet.hosts, hostId), lastBeatAt);
    hostsLost ||= loss === 'hosts';
    if (loss !== 'nothing') await noteLoss(direct, namespace);
    // Redis may have lost the retention.
    await recordRetention(direct, fleet, settings.retentionMs).catch(() => {});
    await heartbeat.recover(direct, async () => {
      const { changes } = history;
      if (changes === declared) return leases.renew((held) => jobs.renew(held, direct));
      logger.warn({ sessions: sessions.size }, 'redis.replaced');
      await leases.renew((held) => jobs.declare(held, direct));
      await sessions.declare(direct);
      declared = changes;
    });
    // In a Cluster, the first call shows whether the node was replaced.
    if (history.changes !== declared) throw new Error('Redis was replaced meanwhile');
    void settling.begin(lastBeatAt, hostsLost);
    hostsLost = false;
  });
}
