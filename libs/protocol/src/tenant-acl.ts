import {
  ANY_FLEET,
  approvalKeys,
  callsKey,
  diskUseKey,
  feedPattern,
  fleetIdentityKey,
  fleetKeys,
  hostKeys,
  inboxChannel,
  quotasKey,
  sessionKeys,
  sessionsQueue,
  tenantKeys,
  toKeyspace,
  toolCallKey,
  toolEventsKey,
  toolQueue,
  toolResultKey,
  wakeUpsChannel,
} from './keys.ts';

/** Commands that reach only the keys and channels that they name, and those that a client needs without a key. */
const COMMANDS = [
  '+@string +@hash +@list +@set +@sortedset +@stream',
  '+del +unlink +exists +type +copy +rename +expire +pexpire +persist +pttl',
  '+eval +evalsha +script|load +multi +exec +discard',
  '+publish +subscribe +unsubscribe +psubscribe +pubsub|numsub',
  '+ping +quit +select +client|setname -@dangerous +info +time',
].join(' ');

/**
 * Returns the command that creates or replaces the Redis user of a tenant (Redis 7). The user can do what the SDK
 * offers to the tenant, and reaches no key or channel of another tenant. It cannot list keys or channels. `PASSWORD`
 * stands for the password.
 */
export function tenantAclLine(namespace: string, tenant: string): string {
  const keyspace = toKeyspace(namespace, ANY_FLEET);
  const fleet = fleetKeys(keyspace);
  const own = tenantKeys(keyspace, tenant);
  const host = hostKeys(keyspace, '*');
  const writes = [
    `${sessionKeys(keyspace, tenant, '*').prefix}*`,
    own.index,
    callsKey(keyspace, tenant, '*'),
    `${fleet.sessionQueues}:${sessionsQueue('*', tenant)}:*`,
    `${fleet.tools}:${toolQueue('*', tenant)}:*`,
    toolCallKey(fleet, tenant, '*'),
    toolResultKey(fleet, tenant, '*'),
    toolEventsKey(fleet, tenant),
  ];
  const reads = [
    ...[
      own.closed,
      own.kept,
      quotasKey(keyspace, tenant),
      diskUseKey(keyspace, tenant),
      fleetIdentityKey(namespace),
      fleet.retention,
      fleet.restoring,
      fleet.demand,
      fleet.hosts,
    ],
    ...[host.alive, host.boot, host.left, host.cordon, host.tools, fleet.knownTools],
  ];
  const channels = [
    ...[feedPattern(keyspace, tenant), approvalKeys(keyspace, tenant).feed, toolEventsKey(fleet, tenant)],
    ...[inboxChannel(keyspace, tenant, '*'), wakeUpsChannel(keyspace, tenant, '*')],
  ];
  const noted = [fleet.noted, fleet.batchesNoted, fleet.toolsNoted, host.callers].map((key) => `%W~${key}`);
  const wakeUps = [fleet.sessionsWakeUps, fleet.toolsWakeUps, host.wakeUps].map((channel) => `&${channel}`);
  return [
    `ACL SETUSER tenant-${tenant} reset on >PASSWORD`,
    ...writes.map((key) => `~${key}`),
    ...reads.map((key) => `%R~${key}`),
    ...channels.map((channel) => `&${channel}`),
    COMMANDS,
    `(${[...noted, '+lpush'].join(' ')})`,
    `(${[...wakeUps, '+publish'].join(' ')})`,
  ].join(' ');
}
