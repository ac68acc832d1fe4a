import { beforeAll, describe, expect, test } from 'vitest';
import { type ChartTools, chartTools } from '../../../scripts/testing/chart-tools.ts';
import { EVERYTHING } from './support/chart-values.ts';
import { clusterOfSecrets } from './support/cluster-of-secrets.ts';
import { type ChartObject, NAMESPACE, RELEASE, renderChart } from './support/render-chart.ts';

let tools: ChartTools;
let kinds: ChartObject[];
beforeAll(async () => {
  tools = await chartTools();
  kinds = await renderChart(tools, EVERYTHING);
}, 300_000);

/** Returns the Secrets that helm would write into a cluster that has some of this release already. */
async function secretsWritten(clusterHas: readonly ChartObject[]): Promise<ChartObject[]> {
  const owned = clusterHas.map((secret) => ({ ...secret, metadata: { ...secret.metadata, annotations: OWNED } }));
  await using cluster = await clusterOfSecrets(kinds, owned);
  const args = ['--dry-run=server', '--disable-openapi-validation', '--kube-apiserver', cluster.url];
  return (await renderChart(tools, EVERYTHING, { args })).filter(({ kind }) => kind === 'Secret');
}

/** Annotations by which helm takes an object for one of the release, in an upgrade or a second install. */
const OWNED = { 'meta.helm.sh/release-name': RELEASE, 'meta.helm.sh/release-namespace': NAMESPACE };

const dataOf = (secrets: readonly ChartObject[], name: string) => {
  const data = secrets.find(({ metadata }) => metadata.name === `trial-shellfleet-${name}`)?.data;
  return Object.fromEntries(Object.entries(data ?? {}).map(([key, value]) => [key, atob(value as string)]));
};

describe('keys that the chart makes', () => {
  test('are random in the first install, and stay the same in an upgrade', async () => {
    const [first, other] = await Promise.all([secretsWritten([]), secretsWritten([])]);
    for (const name of ['keys', 'scale', 'redis']) expect(dataOf(other, name)).not.toEqual(dataOf(first, name));
    expect(await secretsWritten(first)).toEqual(first);
  });

  test('have the form that workers, KEDA and Redis read', async () => {
    const secrets = await secretsWritten([]);
    const { 'seal-key': sealKey = '' } = dataOf(secrets, 'keys');
    expect(Buffer.from(sealKey, 'base64').length).toBe(32);
    expect(dataOf(secrets, 'scale')).toEqual({ token: expect.stringMatching(/^\w{40}$/) });
    const { password } = dataOf(secrets, 'redis');
    expect(dataOf(secrets, 'redis')).toEqual({
      password: expect.stringMatching(/^\w{40}$/),
      url: `redis://default:${password}@trial-shellfleet-redis.${NAMESPACE}.svc:6379/0`,
      'users.acl': `user default on >${password} ~* &* +@all\n`,
    });
  });

  test('of seals outlive an uninstall, all others do not', async () => {
    const kept = (await secretsWritten([])).filter(
      ({ metadata }) => metadata.annotations?.['helm.sh/resource-policy'] === 'keep',
    );
    expect(kept.map(({ metadata }) => metadata.name)).toEqual(['trial-shellfleet-keys']);
  });
});
