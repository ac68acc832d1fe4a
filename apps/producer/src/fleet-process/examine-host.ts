import { hostname } from 'node:os';
import { DEFAULT_POLICY, ensureShellfleetError, toKeyspace } from '@shellfleet/protocol';
import { connectRedis, describeRedis, refuseMissingPermissions, requireFleet } from '@shellfleet/redis';
import { diagnose, type MachinePart } from '@shellfleet/setup';
import type { Invitation } from './invitation.ts';

/** What a part of this machine is worth to a worker: without a `needed` one it cannot start. */
export type HostPart = MachinePart & { isNeeded?: boolean };

/** Parts that a worker of containers does not start without. */
const NEEDED = new Set(['node', 'docker', 'compiler', 'keeper']);

/** Examines whether a worker with this invitation can serve on this machine. Changes nothing on the machine. */
export async function examineHost(invitation: Invitation, env: NodeJS.ProcessEnv): Promise<HostPart[]> {
  const ofRedis = examineRedis(invitation);
  const policies = (env.SHELLFLEET_POLICIES || DEFAULT_POLICY).split(',').map((name) => name.trim());
  const machine = await diagnose({ ...env, SHELLFLEET_REDIS_URL: invitation.redisUrl });
  const hasContainers = policies.includes('docker');
  const parts = machine
    .filter(({ name }) => NEEDED.has(name) && (hasContainers || name !== 'docker'))
    .map((part) => ({ ...part, isNeeded: true }));
  const image = machine.find(({ name }) => name === 'session image');
  return [...parts, ...(hasContainers && image ? [describeImage(image, env)] : []), ...(await ofRedis)];
}

function describeImage(part: MachinePart, env: NodeJS.ProcessEnv): HostPart {
  if (env.SHELLFLEET_DEFAULT_IMAGE) return { name: part.name, state: 'present', detail: env.SHELLFLEET_DEFAULT_IMAGE };
  if (part.state === 'present') return part;
  return { ...part, state: 'missing', fix: 'name an image that this machine can pull in SHELLFLEET_DEFAULT_IMAGE' };
}

async function examineRedis({ redisUrl, namespace, fleetId }: Invitation): Promise<HostPart[]> {
  const place = describeRedis(redisUrl);
  const names = { redis: 'fleet’s redis', clock: 'clock' };
  try {
    const connected = await connectRedis(redisUrl, 'producer', 'shellfleet-join');
    try {
      await refuseMissingPermissions(connected.redis, place, namespace, hostname());
      await requireFleet(connected.redis, toKeyspace(namespace, fleetId), place);
      const problem = await connected.clockProblem;
      return [
        { name: names.redis, state: 'present', detail: `fleet ${fleetId} at ${place}` },
        problem === undefined
          ? { name: names.clock, state: 'present', detail: 'within a minute of that of Redis' }
          : {
              name: names.clock,
              state: 'missing',
              detail: problem.replace(/\.$/, ''),
              fix: 'timedatectl set-ntp true',
            },
      ];
    } finally {
      connected.redis.disconnect();
    }
  } catch (error) {
    const detail = ensureShellfleetError(error).message.replace(/\.$/, '');
    const fix = `let this machine reach ${place} as the invitation says, or make another invitation`;
    return [{ name: names.redis, state: 'missing', detail, fix, isNeeded: true }];
  }
}
