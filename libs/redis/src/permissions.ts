import { fleetIdentityKey, fleetKeys, hostKeys, ShellfleetError, sessionKeys, toKeyspace } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';

/**
 * Script that finds the first forbidden command. Redis before 7 cannot check permissions: there, the first refused call
 * reports the missing one.
 */
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

/** Throws REDIS_UNSUITABLE for a missing permission of a host. Checks one command for each kind of command and key. */
export async function refuseMissingPermissions(
  redis: Redis,
  place: string,
  namespace: string,
  hostId: string,
): Promise<void> {
  // Any identity is sufficient here. Reading the real identity would need these permissions.
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
  // The declared key selects the node of a Cluster. The check reads no key.
  const args = needed.flatMap((words) => [words.length, ...words]);
  const forbidden = (await redis.eval(FIRST_FORBIDDEN, 1, host.boot, ...args)) as string | null;
  if (forbidden === null) return;
  throw new ShellfleetError(
    'REDIS_UNSUITABLE',
    `Redis at ${place} does not let this user run ${forbidden}. Give it the worker's ACL of docs/operations.md.`,
    { place, setting: 'acl', command: forbidden },
  );
}
