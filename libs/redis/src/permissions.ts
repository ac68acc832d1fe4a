import { fleetIdentityKey, fleetKeys, hostKeys, ShellfleetError, sessionKeys, toKeyspace } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/** Redis older than 7 cannot tell; there the first call that is refused reports it. */
const FIRST_FORBIDDEN = `
if not redis.acl_check_cmd then return false end
local from = 1
while ARGV[from] do
  local words = {}
  for i = from + 1, from + tonumber(ARGV[from]) do words[#words + 1] = ARGV[i] end
  if not redis.acl_check_cmd(unpack(words)) then return table.concat(words, ' ') end
  from = from + #words + 1
end
return false`;

/**
 * Throws REDIS_UNSUITABLE with the first command that a host needs and the user of this connection may not run. One command stands for each kind
 * of key and channel, and of command.
 */
export async function refuseMissingPermissions(
  redis: Redis,
  place: string,
  namespace: string,
  hostId: string,
): Promise<void> {
  // Any identity: that of the fleet is read with these permissions.
  const keyspace = toKeyspace(namespace, '0'.repeat(12));
  const fleet = fleetKeys(keyspace);
  const host = hostKeys(keyspace, hostId);
  const session = sessionKeys(keyspace, 'default', 'any');
  const needed = [
    ['GET', fleetIdentityKey(namespace)],
    ['SET', fleetIdentityKey(namespace), 'x'],
    ['GET', host.boot],
    ['SET', host.boot, 'x'],
    ['XRANGE', host.calls, '-', '+'],
    ['ZADD', fleet.hosts, '1', 'x'],
    ['HSET', fleet.owners, 'x', 'x'],
    ['INCR', fleet.fence],
    ['XADD', session.stream, '*', 'x', 'x'],
    ['HSET', session.state, 'x', 'x'],
    ['DEL', session.queue],
    ['MEMORY', 'USAGE', session.stream],
    ['COPY', session.stream, session.stream],
    ['RENAME', session.stream, session.stream],
    ['PUBLISH', session.feed, 'x'],
    ['SUBSCRIBE', host.wakeUps],
    ['SUBSCRIBE', fleet.sessionsWakeUps],
    ['SET', fleet.knownTools, 'x'],
    ['EVALSHA', 'x', '1', session.state],
    ['MULTI'],
    ['TIME'],
  ];
  // The declared key decides the node of a Cluster; a check reads no key.
  const args = needed.flatMap((words) => [words.length, ...words]);
  const forbidden = (await redis.eval(FIRST_FORBIDDEN, 1, host.boot, ...args)) as string | null;
  if (forbidden === null) return;
  throw new ShellfleetError(
    'REDIS_UNSUITABLE',
    `Redis at ${place} does not let this user run ${forbidden}. Give it the worker's ACL of docs/operations.md.`,
    { place, setting: 'acl', command: forbidden },
  );
}
