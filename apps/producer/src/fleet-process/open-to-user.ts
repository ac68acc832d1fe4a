import { Fleet } from '@shellfleet/client';
import { stateDirectory } from '@shellfleet/setup';
import { ensureApiKey } from './api-key.ts';
import type { ServedFleet } from './supervise-api.ts';

/** Returns the API key of the user who starts a fleet. */
export async function openToUser(settings: ServedFleet, env: NodeJS.ProcessEnv): Promise<string> {
  await using fleet = await Fleet.connect(settings);
  return await ensureApiKey(fleet, stateDirectory(env));
}
