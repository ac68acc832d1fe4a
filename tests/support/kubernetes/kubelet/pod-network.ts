import { setTimeout as delay } from 'node:timers/promises';
import Docker from 'dockerode';

/** Network of the Pods of one cluster. The kubelet gives each Pod its address. */
export interface PodNetwork {
  name: string;
  /** Address of this machine in the network. */
  gateway: string;
  nextAddress(): string;
  remove(): Promise<void>;
}

const ATTEMPTS = 20;

/**
 * Makes a network. With `enforced`, containers reach neither each other nor anything outside, as under NetworkPolicies
 * that deny everything; this machine reaches them. Without it they reach each other and this machine.
 */
export async function makePodNetwork(
  docker: Docker,
  name: string,
  { enforced, labels }: { enforced: boolean; labels: Record<string, string> },
): Promise<PodNetwork> {
  const options = {
    Name: name,
    Driver: 'bridge',
    Internal: enforced,
    Options: { 'com.docker.network.bridge.enable_icc': String(!enforced) },
    Labels: labels,
  };
  // The engine lets containers choose their addresses only where the network's subnet was chosen too. A free subnet is
  // one that the engine has given a moment before.
  for (let attempt = 1; ; attempt += 1) {
    const subnet = await findFreeSubnet(docker, options);
    const made = await docker
      .createNetwork({ ...options, IPAM: { Driver: 'default', Config: [{ ...subnet }] } })
      .catch((error: Error) => error);
    if (!(made instanceof Error)) return describe(name, subnet, () => made.remove());
    if (attempt === ATTEMPTS) throw made;
    await delay(50);
  }
}

/** Returns an address of this machine that containers of every network reach. */
export async function bridgeAddress(dockerHost: string): Promise<string> {
  const docker = new Docker({ socketPath: dockerHost.replace('unix://', '') });
  return subnetOf(await docker.getNetwork('bridge').inspect()).Gateway;
}

interface Subnet {
  Subnet: string;
  Gateway: string;
}

async function findFreeSubnet(docker: Docker, options: Docker.NetworkCreateOptions): Promise<Subnet> {
  const trial = await docker.createNetwork(options);
  const subnet = subnetOf(await trial.inspect());
  await trial.remove();
  return subnet;
}

/** Returns the network's subnet. An engine that has just made its own bridge names no gateway of it. */
function subnetOf({ IPAM }: Docker.NetworkInspectInfo): Subnet {
  const [{ Subnet = '', Gateway } = {}] = (IPAM?.Config ?? []) as Partial<Subnet>[];
  return { Subnet, Gateway: Gateway ?? addressIn(Subnet, 1) };
}

function describe(name: string, { Subnet, Gateway }: Subnet, remove: () => Promise<unknown>): PodNetwork {
  const size = 2 ** (32 - Number(Subnet.split('/')[1]));
  let used = 1;
  return {
    name,
    gateway: Gateway,
    nextAddress() {
      used += 1;
      if (used >= size - 1) throw new Error('the network of the Pods has no address left');
      return addressIn(Subnet, used);
    },
    async remove() {
      await remove();
    },
  };
}

/** Returns the address with this number in a network such as `172.17.0.0/16`. */
function addressIn(subnet: string, number: number): string {
  const [base = ''] = subnet.split('/');
  const address = base.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) + number;
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
