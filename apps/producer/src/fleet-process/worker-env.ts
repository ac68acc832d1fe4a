import type { Machine } from '@shellfleet/setup';
import type { ServedFleet } from './supervise-api.ts';

/** Settings that the workers of a fleet share. */
export interface SharedSettings {
  slots?: number;
  policies?: string;
}

interface WorkerSurroundings {
  env: NodeJS.ProcessEnv;
  fleet: Pick<ServedFleet, 'redisUrl' | 'sealKeys'>;
  machine: Machine | undefined;
}

/** Returns the environment of a worker of `up`. Workers are numbered from 1. */
export function toWorkerEnv(
  number: number,
  options: SharedSettings,
  surroundings: WorkerSurroundings,
): NodeJS.ProcessEnv {
  const { env, fleet, machine } = surroundings;
  return {
    // A person who starts a fleet on their own machine is its operator and its user.
    SHELLFLEET_ALLOW_UNREDACTED: '1',
    ...env,
    ...(machine === undefined ? {} : { DOCKER_HOST: machine.engine.endpoint.dockerHost }),
    SHELLFLEET_REDIS_URL: fleet.redisUrl,
    SHELLFLEET_SEAL_KEY: fleet.sealKeys.join(','),
    ...(options.slots === undefined ? {} : { SHELLFLEET_SLOTS: String(options.slots) }),
    ...(options.policies === undefined ? {} : { SHELLFLEET_POLICIES: options.policies }),
    ...(number === 1 ? {} : metricsPort(env.SHELLFLEET_METRICS_PORT, number)),
    // The first worker keeps the machine's id. Further ones need other ids.
    ...(number === 1 ? {} : { SHELLFLEET_HOST_ID: `${env.SHELLFLEET_HOST_ID || 'host'}-${number}` }),
  };
}

/** Returns the port of a further worker: the ports of all follow one another. With 0, each takes a free one. */
function metricsPort(first: string | undefined, number: number): { SHELLFLEET_METRICS_PORT?: string } {
  const port = Number(first);
  return port > 0 ? { SHELLFLEET_METRICS_PORT: String(port + number - 1) } : {};
}
