import { setTimeout as delay } from 'node:timers/promises';
import { parseKeyspace, ShellfleetError } from '@shellfleet/protocol';
import type { NetworkInspectInfo } from '@shellfleet/vendor/dockerode';
import { type EngineAnswer, isEngineAnswer, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** The engine drops what one container of the network sends to another. */
const APART = 'com.docker.network.bridge.enable_icc';
const BRIDGE_NAME = 'com.docker.network.bridge.name';
/** How long a network that another worker is making may take until it is listed. */
const LISTED_WITHIN_MS = 5_000;
const LOOK_AGAIN_MS = 50;

/**
 * Returns the id of the engine's network for all sessions of a fleet with the network `full`, and makes it where it is missing. It stays, as an image
 * does. Throws SANDBOX_UNAVAILABLE where the engine cannot make it, or has one of that name that does not keep its containers apart.
 *
 * Engines before 25 let several workers make a network of one name at once, and then refuse that name as ambiguous. Every engine makes a bridge of one
 * name only once. So the bridge has a fixed name too, and a worker that is refused waits for the network of the one that was not.
 */
export async function ensureFullNetwork(engine: Engine, keyspace: string): Promise<string> {
  const network = (await findNetwork(engine, keyspace)) ?? (await createNetwork(engine, keyspace));
  if (network.Driver === 'bridge' && network.Options?.[APART] === 'false') return network.Id;
  const name = nameOf(keyspace);
  throw unavailable(
    `the engine has a network ${name} that does not keep containers apart: remove it (docker network rm ${name})`,
  );
}

const nameOf = (keyspace: string) => `shellfleet-full-${parseKeyspace(keyspace).fleetId}`;

/** The name of the network's bridge: 15 characters, as many as the kernel takes. */
const bridgeOf = (keyspace: string) => `sf-${parseKeyspace(keyspace).fleetId}`;

async function findNetwork(engine: Engine, keyspace: string): Promise<NetworkInspectInfo | undefined> {
  const name = nameOf(keyspace);
  // The filter takes parts of names too.
  const filters = { name: [name] };
  const found = await engine
    .call((docker, abortSignal) => docker.listNetworks({ filters, abortSignal }))
    .catch((error: unknown) => {
      throw toShellfleetError(error, 'looking for a network');
    });
  return found.find(({ Name }) => Name === name);
}

async function createNetwork(engine: Engine, keyspace: string): Promise<NetworkInspectInfo> {
  const { namespace, fleetId } = parseKeyspace(keyspace);
  const request = {
    Name: nameOf(keyspace),
    Driver: 'bridge',
    CheckDuplicate: true,
    Options: { [APART]: 'false', [BRIDGE_NAME]: bridgeOf(keyspace) },
    Labels: { 'shellfleet.network': 'full', 'shellfleet.namespace': namespace, 'shellfleet.fleet': fleetId },
  };
  const refusal = await engine
    .call((docker, abortSignal) => docker.createNetwork({ ...request, abortSignal }))
    .then(
      () => undefined,
      (error: unknown) => {
        if (isTaken(error)) return error;
        throw toShellfleetError(error, 'making a network', ({ message }) => unavailable(cannotMake(message)));
      },
    );
  const until = performance.now() + LISTED_WITHIN_MS;
  for (;;) {
    const network = await findNetwork(engine, keyspace);
    if (network) return network;
    if (performance.now() > until) break;
    await delay(LOOK_AGAIN_MS);
  }
  throw unavailable(cannotMake(refusal?.message ?? 'it was removed at once'));
}

/** The engine refuses a second network with 409, and a second bridge of one name with 403. */
function isTaken(error: unknown): error is EngineAnswer {
  return isEngineAnswer(error) && [403, 409].includes(error.statusCode);
}

const cannotMake = (reason: string) => `the engine cannot make it: ${reason}`;

function unavailable(reason: string): ShellfleetError {
  const issues = [{ path: 'sandbox.network', message: reason }];
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot give a session the network 'full': ${reason}.`, {
    issues,
  });
}
