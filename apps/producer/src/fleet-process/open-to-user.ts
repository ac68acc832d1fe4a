import { Fleet } from '@shellfleet/client';
import { stateDirectory } from '@shellfleet/setup';
import { ensureApiKey } from './api-key.ts';
import type { ServedFleet } from './supervise-api.ts';

interface Surroundings {
  env: NodeJS.ProcessEnv;
  report: (line: string) => void;
}

/**
 * Returns the API key of the user who starts a fleet. Lets this user answer the questions of their own commands, if
 * nobody else reaches the fleet and nothing was configured.
 */
export async function openToUser(settings: ServedFleet, { env, report }: Surroundings): Promise<string> {
  await using fleet = await Fleet.connect(settings);
  if (isOfThisMachine(env) && (await fleet.configuration()) === undefined) {
    await fleet.applyConfiguration({ approvals: { self: true } }, { appliedBy: 'up' });
    report(
      'Only this machine reaches the fleet, so whoever submits a command may also answer its questions (approvals: { self: true } of its configuration).',
    );
  }
  return await ensureApiKey(fleet, stateDirectory(env));
}

/** Returns true if `up` makes the Redis, and the API listens on loopback alone. */
function isOfThisMachine({ SHELLFLEET_REDIS_URL, SHELLFLEET_API_HOST }: NodeJS.ProcessEnv): boolean {
  return !SHELLFLEET_REDIS_URL && /^(|localhost|127\..*|::1)$/.test(SHELLFLEET_API_HOST ?? '');
}
