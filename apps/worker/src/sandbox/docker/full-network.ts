import { setTimeout as delay } from 'node:timers/promises';
import { parseKeyspace, ShellfleetError } from '@shellfleet/protocol';
import type { NetworkInspectInfo } from '@shellfleet/vendor/dockerode';
import { type EngineReply, isEngineReply, toShellfleetError } from './docker-errors.ts';
import type { Engine } from './engine.ts';

/** Option for traffic between the containers of a network. It must be off. */
const INTER_CONTAINER_TRAFFIC = 'com.docker.network.bridge.enable_icc';
const BRIDGE_NAME = 'com.docker.network.bridge.name';
/** Longest time until the engine lists a network that another worker is creating. */
const LISTED_WITHIN_MS = 5_000;
const LOOK_AGAIN_MS = 50;

/**
 * Returns the engine's network id for a fleet's sessions with the network `full`, creating it if missing. Throws
 * SANDBOX_UNAVAILABLE when the engine cannot create it, or has a network of that name that does not keep its containers
 * apart.
 */
export async function ensureFullNetwork(engine: Engine, keyspace: string): Promise<string> {
  const network = (await findNetwork(engine, keyspace)) ?? (await createNetwork(engine, keyspace));
  if (network.Driver === 'bridge' && network.Options?.[INTER_CONTAINER_TRAFFIC] === 'false') return network.Id;
  const name = nameOf(keyspace);
  throw unavailable(
    `the engine has a network ${name} that does not keep containers apart: remove it (docker network rm ${name})`,
  );
}

const nameOf = (keyspace: string) => `shellfleet-full-${parseKeyspace(keyspace).fleetId}`;

/**
 * Returns the name of the network's bridge (the kernel allows 15 characters). Engines before 25 create ambiguous
 * networks of one name, but only one bridge of a name: a refused worker waits for the network of the other worker.
 */
const bridgeOf = (keyspace: string) => `sf-${parseKeyspace(keyspace).fleetId}`;

async function findNetwork(engine: Engine, keyspace: string): Promise<NetworkInspectInfo | undefined> {
  const name = nameOf(keyspace);
  // This filter also matches parts of names, so the exact name is compared below.
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
    Options: { [INTER_CONTAINER_TRAFFIC]: 'false', [BRIDGE_NAME]: bridgeOf(keyspace) },
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

/** Tells whether the network exists (the engine replies 409) or its bridge does (403). */
function isTaken(error: unknown): error is EngineReply {
  return isEngineReply(error) && [403, 409].includes(error.statusCode);
}

const cannotMake = (reason: string) => `the engine cannot make it: ${reason}`;

function unavailable(reason: string): ShellfleetError {
  const issues = [{ path: 'sandbox.network', message: reason }];
  return new ShellfleetError('SANDBOX_UNAVAILABLE', `This host cannot give a session the network 'full': ${reason}.`, {
    issues,
  });
}
