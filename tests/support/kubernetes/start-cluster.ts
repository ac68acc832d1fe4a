import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Rule } from './api-server/access.ts';
import { makeCertificates } from './api-server/certificates.ts';
import { ApiServer, type ApiServerOptions } from './api-server/server.ts';

export interface ClusterOptions extends Partial<Pick<ApiServerOptions, 'bookmarkEveryMs' | 'expiredAs'>> {
  /** Namespace of the Pods. */
  namespace?: string;
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

export interface Cluster extends AsyncDisposable {
  readonly server: ApiServer;
  readonly namespace: string;
  readonly caFile: string;
  /** Makes a token with these rules of a Role in the namespace, and these of a ClusterRole. */
  tokenFor(rules: Rule[], clusterRules?: Rule[]): Promise<Account>;
  close(): Promise<void>;
}

/** Starts an API server for one test file. */
export async function startCluster({ namespace = 'sessions', ...rest }: ClusterOptions = {}): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), 'sf-cluster-'));
  const host = '127.0.0.1';
  const certificates = await makeCertificates(directory, [host, 'localhost', 'kubernetes.default.svc']);
  const server = await ApiServer.start({ ...rest, certificates, host });
  server.addNamespace('default');
  server.addNamespace(namespace);
  let accounts = 0;
  const close = async () => {
    await server.stop();
    await rm(directory, { recursive: true, force: true });
  };
  return {
    server,
    namespace,
    caFile: certificates.caFile,
    async tokenFor(rules, clusterRules = []) {
      accounts += 1;
      const name = `system:serviceaccount:${namespace}:account-${accounts}`;
      const user = { name, rules: { [namespace]: rules, '*': clusterRules } };
      return addAccount(server, user, {
        namespace,
        caFile: certificates.caFile,
        path: join(directory, `token-${accounts}`),
      });
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

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
