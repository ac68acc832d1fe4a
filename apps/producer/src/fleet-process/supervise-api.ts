import type { FleetFile } from '@shellfleet/client';
import { z } from 'zod';
import { apiProgram } from './api-program.ts';
import { type ProcessEvents, type SupervisedProcess, superviseProcess } from './supervised-process.ts';

/** Message of an API that is ready. */
export const apiReadySchema = z.object({ url: z.url() });

type Ready = z.output<typeof apiReadySchema>;

export type ApiProcess = SupervisedProcess<Ready>;

/** Fleet that an API serves. */
export type ServedFleet = Pick<FleetFile, 'redisUrl' | 'namespace' | 'sealKeys'>;

/** Returns the environment of an API for the fleet. */
function toApiEnv({ redisUrl, namespace, sealKeys }: ServedFleet, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...env,
    SHELLFLEET_REDIS_URL: redisUrl,
    SHELLFLEET_NAMESPACE: namespace,
    SHELLFLEET_SEAL_KEY: sealKeys.join(','),
  };
}

/** Starts the HTTP API of the fleet, and starts it again at the same port when it dies. */
export function superviseApi(fleet: ServedFleet, env: NodeJS.ProcessEnv, on: ProcessEvents<Ready>): ApiProcess {
  const apiEnv = toApiEnv(fleet, env);
  return superviseProcess(
    { args: apiProgram(), env: () => apiEnv, ready: apiReadySchema },
    {
      ...on,
      changed(process) {
        if (process?.url !== undefined) apiEnv.SHELLFLEET_API_PORT = new URL(process.url).port;
        on.changed(process);
      },
    },
  );
}
