export { describeRedis, parseRedisUrl } from './address.ts';
export { type Connected, checkRedis, connectRedis } from './connection.ts';
export {
  isNewestConfiguration,
  readFleetConfiguration,
  readTenantQuotas,
  writeFleetConfiguration,
} from './fleet/fleet-configuration.ts';
export {
  declareFleet,
  findFleet,
  isRestoring,
  joinFleet,
  noteLoss,
  RESTORING_MS,
  readFleetIdentity,
  requireFleet,
  restoreFleet,
} from './fleet/fleet-identity.ts';
export { findKeysOfFleet, type KeysOfFleet, removeKeysOfFleet } from './fleet/other-protocol.ts';
export { readRetention, recordRetention, retentionOf } from './fleet/retention.ts';
export { readTenantUses, writeTenantUses } from './fleet/tenant-uses.ts';
export { parseInfo, type RedisHistory, type RedisIdentity, readRedisIdentity } from './identity.ts';
export { REDIS_DEADLINE_MS } from './ioredis/call-rules.ts';
export type { ScriptArgument } from './ioredis/changes.ts';
export { type CallCounter, countCalls } from './ioredis/count-calls.ts';
export { sendLater } from './ioredis/send-later.ts';
export { type ConnectionRole, isCluster, mastersOf, openRedis } from './open-redis.ts';
export { refuseMissingPermissions } from './permissions.ts';
export { isRedisFull, throwQueueError, toQueueError } from './queue-error.ts';
export {
  type AvailabilityListener,
  isRedisDown,
  type RetryOptions,
  retryWhileRedisIsDown,
} from './retry-while-redis-is-down.ts';
export {
  asArray,
  asNumber,
  asString,
  defineScript,
  loadScripts,
  runScript,
  type Script,
  unexpected,
} from './scripts/script.ts';
export { infoOfNewConnection } from './suitability.ts';
