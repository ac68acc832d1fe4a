import { ShellfleetError } from '@shellfleet/protocol';
import type { ContainerCreateOptions, Docker } from '@shellfleet/vendor/dockerode';
import { z } from 'zod';
import type { Engine } from './engine.ts';

const answerSchema = z.object({ Id: z.string(), Warnings: z.array(z.string()).nullish() });

/** Warnings that weaken no container: of the engine's own network, of images for another processor, and of later versions. */
const HARMLESS = /IPv[46] forwarding is disabled|does not match the detected host platform|deprecat/i;

/**
 * Creates a container and returns its id. An engine that cannot enforce a setting accepts it, discards it or weakens it, and warns: the
 * container is then removed, and the call rejects with SANDBOX_UNAVAILABLE and the warning (SANDBOX-1).
 */
export async function createContainer(engine: Engine, options: ContainerCreateOptions): Promise<string> {
  // Never aborted by a caller: the engine would still create the container.
  const answer = await engine.call((docker, abortSignal) => dialCreate(docker, options, abortSignal));
  const { Id, Warnings } = answerSchema.parse(answer);
  const discarded = (Warnings ?? []).filter((warning) => !HARMLESS.test(warning));
  if (discarded.length === 0) return Id;
  // A container that stays is removed by the next sweep.
  const remove = (docker: Docker, abortSignal: AbortSignal) =>
    docker.getContainer(Id).remove({ force: true, v: true, abortSignal });
  await engine.call(remove).catch(() => {});
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The Docker engine of this host does not enforce the limits of the session, so nothing was run: ${discarded.join(' ')} Give the engine the control groups of processes, memory and cpus (a rootless engine needs them delegated).`,
    { issues: discarded.map((message) => ({ path: 'limits', message })) },
  );
}

/** As docker.createContainer(), which drops the warnings of the answer. */
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
