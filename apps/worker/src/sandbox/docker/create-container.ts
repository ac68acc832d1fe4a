import { ShellfleetError } from '@shellfleet/protocol';
import type { ContainerCreateOptions, Docker } from '@shellfleet/vendor/dockerode';
import { z } from 'zod';
import type { Engine } from './engine.ts';

const answerSchema = z.object({ Id: z.string(), Warnings: z.array(z.string()).nullish() });

/** Warnings that weaken no container: about the engine's network, images for another processor, and later versions. */
const HARMLESS = /IPv[46] forwarding is disabled|does not match the detected host platform|deprecat/i;

/**
 * Creates a container and returns its id. An engine that cannot enforce a setting only warns. Then the container is
 * removed, and the call rejects with SANDBOX_UNAVAILABLE and the warning (SANDBOX-1).
 */
export async function createContainer(engine: Engine, options: ContainerCreateOptions): Promise<string> {
  // No caller may abort this call: the engine would still create the container.
  const answer = await engine.call((docker, abortSignal) => dialCreate(docker, options, abortSignal));
  const { Id, Warnings } = answerSchema.parse(answer);
  const discarded = (Warnings ?? []).filter((warning) => !HARMLESS.test(warning));
  if (discarded.length === 0) return Id;
  // If this fails, the next sweep removes the container.
  const remove = (docker: Docker, abortSignal: AbortSignal) =>
    docker.getContainer(Id).remove({ force: true, v: true, abortSignal });
  await engine.call(remove).catch(() => {});
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The Docker engine of this host does not enforce the limits of the session, so nothing was run: ${discarded.join(' ')} Give the engine the control groups of processes, memory and cpus (a rootless engine needs them delegated).`,
    { issues: discarded.map((message) => ({ path: 'limits', message })) },
  );
}

/** Creates a container and returns the reply with its warnings, which docker.createContainer() drops. */
function dialCreate(docker: Docker, options: ContainerCreateOptions, abortSignal: AbortSignal): Promise<unknown> {
  const { name, ...body } = options;
  return new Promise((resolve, reject) => {
    docker.modem.dial(
      {
        path: '/containers/create?',
        method: 'POST',
        options: { _query: { name }, _body: body },
        abortSignal,
        statusCodes: { 200: true, 201: true, 400: 'bad parameter', 404: 'no such image', 409: 'conflict' },
      } as Parameters<typeof docker.modem.dial>[0],
      (error, answer) => (error ? reject(error) : resolve(answer)),
    );
  });
}
