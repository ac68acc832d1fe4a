import { apiVersionOf, RESOURCES } from './resources.ts';

const VERSION = {
  major: '1',
  minor: '33',
  gitVersion: 'v1.33.0-shellfleet-tests',
  gitCommit: '0000000000000000000000000000000000000000',
  gitTreeState: 'clean',
  buildDate: '2026-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'linux/amd64',
};

/** Returns the reply to a path without objects, or undefined for one that the server does not have. */
export function discover(path: string): object | string | undefined {
  if (path === '/version') return VERSION;
  if (/^\/(?:healthz|livez|readyz)$/.test(path)) return 'ok';
  if (path === '/api') return { kind: 'APIVersions', versions: ['v1'], serverAddressByClientCIDRs: [] };
  if (path === '/apis') return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups().map(describeGroup) };
  const [, version] = /^\/api\/(v1)$/.exec(path) ?? [];
  if (version !== undefined) return describeResources(version);
  const [, group, groupVersion] = /^\/apis\/([^/]+)(?:\/([^/]+))?$/.exec(path) ?? [];
  if (group === undefined || !groups().includes(group)) return undefined;
  if (groupVersion === undefined) return { kind: 'APIGroup', apiVersion: 'v1', ...describeGroup(group) };
  return describeResources(`${group}/${groupVersion}`);
}

const groups = () => [...new Set(RESOURCES.map(({ group }) => group))].filter((group) => group !== '');

function describeGroup(name: string) {
  const version = { groupVersion: `${name}/v1`, version: 'v1' };
  return { name, versions: [version], preferredVersion: version };
}

function describeResources(groupVersion: string) {
  const resources = RESOURCES.filter((type) => apiVersionOf(type) === groupVersion).map(
    ({ resource, singular, namespaced, kind, verbs, shortNames }) => ({
      name: resource,
      singularName: singular,
      namespaced,
      kind,
      verbs,
      ...(shortNames && { shortNames }),
    }),
  );
  return resources.length === 0 ? undefined : { kind: 'APIResourceList', apiVersion: 'v1', groupVersion, resources };
}
