import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { Rule } from './api-server/access.ts';
import { makeCertificates } from './api-server/certificates.ts';
import { ApiServer, type ApiServerOptions } from './api-server/server.ts';
import { Kubelet } from './kubelet/kubelet.ts';
import type { NodeSettings } from './kubelet/node.ts';
import { bridgeAddress } from './kubelet/pod-network.ts';

export interface ClusterOptions extends Partial<Pick<ApiServerOptions, 'bookmarkEveryMs' | 'expiredAs'>> {
  /** Namespace of the Pods. */
  namespace?: string;
  /** Nodes with kubelets: their number, or their settings. Without nodes no Pod is scheduled. Default: none. */
  nodes?: number | NodeSettings[];
  /** The engine's address, in the form of DOCKER_HOST. Default: the one of the test run. */
  dockerHost?: string;
  /** Whether the network of the Pods keeps them from each other and from the API server. Default: true. */
  enforced?: boolean;
  /** First time between two pulls of an image. Default: 10 s, as that of a kubelet. */
  pullBackoffMs?: number;
  /** Time between two looks at the disks of the Pods. Default: 1 s. A kubelet takes 10 s. */
  housekeepingMs?: number;
}

/** Token of a service account, which is also in a file, as in a Pod. */
interface Account {
  readonly token: string;
  readonly tokenFile: string;
  /** Returns the path of a new kubeconfig for kubectl. */
  kubeconfig(): Promise<string>;
  /** Writes a new token into the file. The server refuses the former one from then on. */
  rotate(): Promise<void>;
  revoke(): void;
}

/** An API server for one test file, and kubelets where the test asks for nodes. */
export class Cluster implements AsyncDisposable {
  readonly server: ApiServer;
  readonly namespace: string;
  readonly caFile: string;
  readonly #kubelet: Kubelet | undefined;
  readonly #directory: string;
  #accounts = 0;

  constructor({ server, namespace, caFile, kubelet, directory }: ClusterParts) {
    this.server = server;
    this.namespace = namespace;
    this.caFile = caFile;
    this.#kubelet = kubelet;
    this.#directory = directory;
  }

  /** The scheduler and the kubelets. Throws in a cluster without nodes. */
  get kubelet(): Kubelet {
    if (!this.#kubelet) throw new Error('this cluster has no nodes');
    return this.#kubelet;
  }

  /** Makes a token with these rules of a Role in the namespace, and these of a ClusterRole. */
  tokenFor(rules: Rule[], clusterRules: Rule[] = []): Promise<Account> {
    this.#accounts += 1;
    const { namespace, caFile } = this;
    const name = `system:serviceaccount:${namespace}:account-${this.#accounts}`;
    const user = { name, rules: { [namespace]: rules, '*': clusterRules } };
    const path = join(this.#directory, `token-${this.#accounts}`);
    return addAccount(this.server, user, { namespace, caFile, path });
  }

  async close(): Promise<void> {
    await this.#kubelet?.close();
    await this.server.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

interface ClusterParts extends Pick<Cluster, 'server' | 'namespace' | 'caFile'> {
  kubelet: Kubelet | undefined;
  directory: string;
}

/** Starts a cluster. */
export async function startCluster(options: ClusterOptions = {}): Promise<Cluster> {
  const {
    namespace = 'sessions',
    nodes = 0,
    enforced = true,
    pullBackoffMs = 10_000,
    housekeepingMs = 1_000,
  } = options;
  const directory = await mkdtemp(join(tmpdir(), 'sf-cluster-'));
  const dockerHost = nodes === 0 ? '' : (options.dockerHost ?? inject('dockerHost'));
  // Containers reach every address of this machine but those of its loopback.
  const host = enforced || nodes === 0 ? '127.0.0.1' : await bridgeAddress(dockerHost);
  const certificates = await makeCertificates(directory, [host, 'localhost', 'kubernetes.default.svc']);
  const { caFile } = certificates;
  const server = await ApiServer.start({ ...options, certificates, host });
  server.addNamespace('default');
  server.addNamespace(namespace);
  const settings = typeof nodes === 'number' ? Array.from({ length: nodes }, nameNode) : nodes;
  const kubelet =
    settings.length === 0
      ? undefined
      : await Kubelet.start(server, { dockerHost, nodes: settings, enforced, pullBackoffMs, housekeepingMs });
  return new Cluster({ server, namespace, caFile, kubelet, directory });
}

const nameNode = (_: unknown, index: number): NodeSettings => ({ name: `node-${index + 1}` });

interface AccountPlace {
  namespace: string;
  caFile: string;
  path: string;
}

async function addAccount(
  { access, url }: ApiServer,
  user: { name: string; rules: Record<string, Rule[]> },
  { namespace, caFile, path }: AccountPlace,
): Promise<Account> {
  let token = access.add(user);
  await writeFile(path, token);
  return {
    get token() {
      return token;
    },
    tokenFile: path,
    revoke: () => access.revoke(token),
    async rotate() {
      access.revoke(token);
      token = access.add(user);
      await writeFile(path, token);
    },
    async kubeconfig() {
      const name = 'tests';
      const config = {
        apiVersion: 'v1',
        kind: 'Config',
        clusters: [{ name, cluster: { server: url, 'certificate-authority': caFile } }],
        users: [{ name, user: { tokenFile: path } }],
        contexts: [{ name, context: { cluster: name, user: name, namespace } }],
        'current-context': name,
      };
      // YAML includes JSON.
      await writeFile(`${path}.kubeconfig`, JSON.stringify(config));
      return `${path}.kubeconfig`;
    },
  };
}
