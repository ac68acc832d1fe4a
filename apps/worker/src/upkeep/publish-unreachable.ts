import { recordNotice, type StoredSession } from '@shellfleet/mailbox';
import type { SessionKeys } from '@shellfleet/protocol';
import { sessionFields, type UpkeepDeps } from './upkeep-deps.ts';

/** Reports that the session's host sends no heartbeat (UPKEEP-2). */
export async function publishUnreachable(
  keys: SessionKeys,
  { host, fence }: StoredSession,
  { redis, logger }: Pick<UpkeepDeps, 'redis' | 'logger'>,
): Promise<void> {
  if (!(await recordNotice(redis, keys, fence, 'host.unreachable', { hostId: host }))) return;
  logger.warn({ 'other.host.id': host, ...sessionFields(keys) }, 'host.unreachable');
}
