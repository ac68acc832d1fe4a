import { setTimeout as delay } from 'node:timers/promises';
import { isMovable } from '@shellfleet/protocol';
import type { Stop } from '../session/hosting.ts';
import type { OpenWorker } from './open-worker.ts';
import type { RunningWorker } from './run-worker.ts';

/** Time for removing sandboxes that did not end within the grace. */
const DISCARD_MS = 5_000;

/** Takes no new work, ends the sessions and then all else. Returns how many sessions ended, and how many are left. */
export async function closeWorker(
  { host, sessions, heartbeat, wakeUps, stopping, closed }: OpenWorker,
  { tools, batches, removed, fetching, subscription, anchoring, rounds }: RunningWorker,
  how: Stop,
  graceMs: number,
): Promise<{ ended: number; left: number }> {
  const { retentionMs, policies } = host.settings;
  stopping.abort();
  wakeUps.notify();
  // The commands of sessions that any worker can reach wait for their next worker, so these leave first.
  const handedOver = how === 'hand-over' ? sessions.stop(how) : undefined;
  await Promise.race([Promise.all([fetching, batches.close()]), delay(graceMs)]);
  // Publishes `draining`, so that no more sessions are sent here.
  await heartbeat.beatNow();
  const { count, ended } = handedOver ?? sessions.stop(how);
  const sessionsEnded = Promise.race([Promise.all([removed, ended]), delay(graceMs)]);
  await Promise.all([sessionsEnded, tools.close(how === 'end' ? 0 : graceMs)]);
  // Processes in a sandbox may prevent an orderly end.
  if (how === 'end' && sessions.size > 0) {
    await Promise.race([sessions.discard().then(() => ended), delay(DISCARD_MS)]);
  }
  const left = sessions.size;
  await Promise.all(rounds.map((round) => round.close()));
  closed.abort();
  await host.audit.close();
  await anchoring.close();
  await heartbeat.close({ leaves: left === 0, forgets: policies.every(isMovable), retentionMs });
  subscription.close();
  await host.jobs.close();
  await host.sandboxes.close();
  host.redis.disconnect();
  host.logger.info({ endedSessions: count - left, leftSessions: left }, 'worker.drained');
  return { ended: count - left, left };
}
