import { parseKeyspace, ShellfleetError } from '@shellfleet/protocol';
import type { NetworkInspectInfo } from '@shellfleet/vendor/dockerode';
import { isConflict, isNotFound, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** The engine drops what one container of the network sends to another. */
const APART = 'com.docker.network.bridge.enable_icc';

/**
 * Returns the id of the engine's network for all sessions of a fleet with the network `full`, and makes it where it is missing. It stays, as an image
 * does. Throws SANDBOX_UNAVAILABLE where the engine does not keep its containers apart.
 *
 * Some engines let two workers make a network of one name at once, and then refuse the name as ambiguous. So the oldest counts, by its id, and a worker
 * removes its own where another is older.
 */
export async function ensureFullNetwork(engine: Engine, keyspace: string): Promise<string> {
  const network = (await findOldest(engine, keyspace)) ?? (await createNetwork(engine, keyspace));
  if (network?.Driver === 'bridge' && network.Options?.[APART] === 'false') return network.Id;
  const name = nameOf(keyspace);
  throw unavailable(
    `the engine has a network ${name} that does not keep containers apart: remove it (docker network rm ${name})`,
  );
}

const nameOf = (keyspace: string) => `shellfleet-full-${parseKeyspace(keyspace).fleetId}`;

async function findOldest(engine: Engine, keyspace: string): Promise<NetworkInspectInfo | undefined> {
  const name = nameOf(keyspace);
  // The filter takes parts of names too.
  const filters = { name: [name] };
  const found = await engine
    .call((docker, abortSignal) => docker.listNetworks({ filters, abortSignal }))
    .catch((error: unknown) => {
      throw toShellfleetError(error, 'looking for a network');
    });
  const age = ({ Created, Id }: NetworkInspectInfo) => `${Created} ${Id}`;
  return found.filter(({ Name }) => Name === name).sort((a, b) => (age(a) < age(b) ? -1 : 1))[0];
}

async function createNetwork(engine: Engine, keyspace: string): Promise<NetworkInspectInfo | undefined> {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const request = {
    Name: nameOf(keyspace),
    Driver: 'bridge',
    CheckDuplicate: true,
    Options: { [APART]: 'false' },
    Labels: { 'shellfleet.network': 'full', 'shellfleet.namespace': namespace, 'shellfleet.fleet': fleetId },
  };
  const made = await engine
    .call((docker, abortSignal) => docker.createNetwork({ ...request, abortSignal }))
    .catch((error: unknown) => {
      // Another worker of this engine has just made it.
      if (isConflict(error)) return undefined;
      throw toShellfleetError(error, 'making a network', ({ message }) =>
        unavailable(`the engine cannot make it: ${message}`),
      );
    });
  const oldest = await findOldest(engine, keyspace);
  if (made !== undefined && oldest !== undefined && oldest.Id !== made.id)
    await engine
      .call(() => made.remove())
      .catch((error: unknown) => {
        if (!isNotFound(error)) throw toShellfleetError(error, 'removing a network');
      });
  return oldest;
}

function unavailable(reason: string): ShellfleetError {
  const issues = [{ path: 'sandbox.network', message: reason }];
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot give a session the network 'full': ${reason}.`, {
    issues,
  });
}
