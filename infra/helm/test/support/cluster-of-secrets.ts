import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { ChartObject } from './render-chart.ts';

export interface ClusterOfSecrets extends AsyncDisposable {
  url: string;
}

/** Serves as much of an API server as `helm template --dry-run=server` asks for: the kinds, and some Secrets. */
export async function clusterOfSecrets(
  kinds: readonly Pick<ChartObject, 'apiVersion' | 'kind'>[],
  secrets: readonly ChartObject[],
): Promise<ClusterOfSecrets> {
  const versions = Map.groupBy(kinds, ({ apiVersion }) => apiVersion);
  const replies = new Map<string, object>([
    ['/version', { major: '1', minor: '35', gitVersion: 'v1.35.0' }],
    ['/api', { kind: 'APIVersions', versions: ['v1'] }],
    ['/apis', { kind: 'APIGroupList', apiVersion: 'v1', groups: [...versions.keys()].filter(isInGroup).map(toGroup) }],
    ...[...versions].map(([version, ones]) => [pathOf(version), toResources(version, ones)] as const),
    ...secrets.map((secret) => [pathOfSecret(secret), secret] as const),
  ]);
  const server = createServer(({ url = '' }, response) => {
    const reply = replies.get(url.replace(/\?.*/, ''));
    response.writeHead(reply ? 200 : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(reply ?? { kind: 'Status', status: 'Failure', reason: 'NotFound', code: 404 }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const isInGroup = (apiVersion: string): boolean => apiVersion.includes('/');
const pathOf = (apiVersion: string): string => (isInGroup(apiVersion) ? `/apis/${apiVersion}` : `/api/${apiVersion}`);
const pathOfSecret = ({ metadata }: ChartObject) => `/api/v1/namespaces/${metadata.namespace}/secrets/${metadata.name}`;

function toGroup(groupVersion: string): object {
  const [name, version] = groupVersion.split('/');
  return { name, versions: [{ groupVersion, version }], preferredVersion: { groupVersion, version } };
}

function toResources(groupVersion: string, ones: readonly { kind: string }[]): object {
  const names = [...new Set(ones.map(({ kind }) => kind))];
  const resources = names.map((kind) => ({ name: `${kind.toLowerCase()}s`, kind, namespaced: true, verbs: ['get'] }));
  return { kind: 'APIResourceList', groupVersion, resources };
}
