import { ShellfleetError } from '@shellfleet/protocol';
import { isConflict, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** The engine's network of all sessions with the network `full`. It stays, as an image does. */
export const FULL_NETWORK = 'shellfleet-full';

/** The engine drops what one container of the network sends to another. */
const APART = 'com.docker.network.bridge.enable_icc';

/** Makes the network once for an engine. Throws SANDBOX_UNAVAILABLE where the engine does not keep its containers apart. */
export async function ensureFullNetwork(engine: Engine): Promise<void> {
  const found = (await findNetwork(engine)) ?? (await createNetwork(engine));
  if (found?.Driver === 'bridge' && found.Options?.[APART] === 'false') return;
  throw unavailable(
    `the engine has a network ${FULL_NETWORK} that does not keep containers apart: remove it (docker network rm ${FULL_NETWORK})`,
  );
}

interface FoundNetwork {
  Driver: string;
  Options?: Record<string, string> | undefined;
}

async function findNetwork(engine: Engine): Promise<FoundNetwork | undefined> {
  return engine
    .call((docker) => docker.getNetwork(FULL_NETWORK).inspect())
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw toShellfleetError(error, 'looking for a network');
    });
}

async function createNetwork(engine: Engine): Promise<FoundNetwork | undefined> {
  const request = {
    Name: FULL_NETWORK,
    Driver: 'bridge',
    CheckDuplicate: true,
    Options: { [APART]: 'false' },
    Labels: { 'shellfleet.network': 'full' },
  };
  await engine
    .call((docker, abortSignal) => docker.createNetwork({ ...request, abortSignal }))
    .catch((error: unknown) => {
      // Another worker of this engine has just made it.
      if (isConflict(error)) return;
      throw toShellfleetError(error, 'making a network', ({ message }) =>
        unavailable(`the engine cannot make it: ${message}`),
      );
    });
  return findNetwork(engine);
}

function unavailable(reason: string): ShellfleetError {
  const issues = [{ path: 'sandbox.network', message: reason }];
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot give a session the network 'full': ${reason}.`, {
    issues,
  });
}
