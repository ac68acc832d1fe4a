import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';

/** Error that dockerode throws when the engine replied with an error. */
export interface EngineReply extends Error {
  statusCode: number;
}

export function isEngineReply(error: unknown): error is EngineReply {
  return error instanceof Error && 'statusCode' in error && typeof error.statusCode === 'number';
}

export function isNotFound(error: unknown): boolean {
  return isEngineReply(error) && error.statusCode === 404;
}

/** Tells whether a removal is already in progress, or the wanted state was already reached. */
export function isConflict(error: unknown): boolean {
  return isEngineReply(error) && error.statusCode === 409;
}

/** Tells whether a container was not removed because it ended just before the engine would have killed it. */
export function isEndedAlready(error: unknown): boolean {
  return isConflict(error) && /is not running/.test((error as Error).message);
}

export function isMissingImage(error: unknown): boolean {
  return isNotFound(error) && /no such image/i.test((error as Error).message);
}

/** Converts an error: to DOCKER_UNAVAILABLE without a reply, a reply by `fromReply`, others to SESSION_START_FAILED. */
export function toShellfleetError(
  error: unknown,
  doing: string,
  fromReply: (answer: EngineReply) => ShellfleetError | undefined = () => undefined,
): ShellfleetError {
  if (isShellfleetError(error)) return error;
  const said = error instanceof Error ? error.message : String(error);
  if (isEngineReply(error)) {
    const known = fromReply(error);
    if (known) return known;
    const answer = { statusCode: error.statusCode };
    return new ShellfleetError('SESSION_START_FAILED', `The Docker engine refused ${doing}: ${said}`, answer, {
      cause: error,
    });
  }
  return new ShellfleetError(
    'DOCKER_UNAVAILABLE',
    `The Docker engine did not answer while ${doing}: ${said}. Is it running, and may this user speak to it?`,
    {},
    { cause: error },
  );
}

export function fromCreateReply(answer: EngineReply): ShellfleetError | undefined {
  if (!/bind source path does not exist/i.test(answer.message)) return undefined;
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The Docker engine does not see a directory that this worker wants to mount: ${answer.message}. A worker that runs in a container needs its state directory mounted at the same path as on the host; else set SHELLFLEET_TRANSPORT=attach.`,
    {},
    { cause: answer },
  );
}

export function fromStartReply(answer: EngineReply, image: string): ShellfleetError | undefined {
  if (!/unable to find (user|group)|no matching entries in passwd/i.test(answer.message)) return undefined;
  return new ShellfleetError(
    'SESSION_START_FAILED',
    `The image ${image} does not know the user that the session asks for: ${answer.message}. Give a number (uid:gid), or choose another image.`,
    { image },
    { cause: answer },
  );
}
