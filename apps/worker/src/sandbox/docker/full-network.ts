import { parseKeyspace, ShellfleetError } from '@shellfleet/protocol';
import { isConflict, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** The engine's network of all sessions of a fleet with the network `full`. It stays, as an image does. */
export const fullNetwork = (keyspace: string) => `shellfleet-full-${parseKeyspace(keyspace).fleetId}`;

/** The engine drops what one container of the network sends to another. */
const APART = 'com.docker.network.bridge.enable_icc';

/** Names of networks are not unique: an engine that is asked twice at once may make two, and then takes neither by its name. */
const making = new WeakMap<Engine, Promise<void>>();

/** Makes the network once for an engine. Throws SANDBOX_UNAVAILABLE where the engine does not keep its containers apart. */
export function ensureFullNetwork(engine: Engine, keyspace: string): Promise<void> {
  const made = making.get(engine) ?? ensure(engine, keyspace).finally(() => making.delete(engine));
  making.set(engine, made);
  return made;
}

async function ensure(engine: Engine, keyspace: string): Promise<void> {
  const name = fullNetwork(keyspace);
  const found = (await findNetwork(engine, name)) ?? (await createNetwork(engine, keyspace));
  if (found?.Driver === 'bridge' && found.Options?.[APART] === 'false') return;
  throw unavailable(
    `the engine has a network ${name} that does not keep containers apart: remove it (docker network rm ${name})`,
  );
}

interface FoundNetwork {
  Driver: string;
  Options?: Record<string, string> | undefined;
}

async function findNetwork(engine: Engine, name: string): Promise<FoundNetwork | undefined> {
  return engine
    .call((docker) => docker.getNetwork(name).inspect())
    .catch((error: unknown) => {
      if (isNotFound(error)) return undefined;
      throw toShellfleetError(error, 'looking for a network');
    });
}

async function createNetwork(engine: Engine, keyspace: string): Promise<FoundNetwork | undefined> {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const request = {
    Name: fullNetwork(keyspace),
    Driver: 'bridge',
    CheckDuplicate: true,
    Options: { [APART]: 'false' },
    Labels: { 'shellfleet.network': 'full', 'shellfleet.namespace': namespace, 'shellfleet.fleet': fleetId },
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
  return findNetwork(engine, fullNetwork(keyspace));
}

function unavailable(reason: string): ShellfleetError {
  const issues = [{ path: 'sandbox.network', message: reason }];
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot give a session the network 'full': ${reason}.`, {
    issues,
  });
}
