import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { type ChartTools, chartTools } from '../../../scripts/testing/chart-tools.ts';
import { findModelFaults } from './checks/models.ts';
import { findFaults } from './find-faults.ts';
import { EVERYTHING, OPTIONS } from './support/chart-values.ts';
import { readAsProxy, readAsWorker } from './support/read-as-worker.ts';
import {
  type ChartObject,
  chartDirectory,
  NAMESPACE,
  parseObjects,
  renderChart,
  runHelm,
} from './support/render-chart.ts';

const checkout = fileURLToPath(new URL('../../..', import.meta.url));

let tools: ChartTools;
beforeAll(async () => {
  tools = await chartTools();
}, 300_000);

describe('the chart', () => {
  test('passes the strict lint of helm', async () => {
    const said = await runHelm(tools.helm, ['lint', '--strict', chartDirectory, '-f', '-'], EVERYTHING);
    expect(said).toContain('0 chart(s) failed');
  });

  test.for(Object.entries({ ...OPTIONS, everything: EVERYTHING }))(
    'makes sound objects with %s',
    async ([, values]) => {
      expect(await findFaults(tools, await renderChart(tools, values), values)).toEqual([]);
    },
  );

  test('makes every kind of object with all options, and no others without', async () => {
    const kindsOf = async (values: object) =>
      [...new Set((await renderChart(tools, values)).map(({ kind }) => kind))].sort().join(' ');
    expect(await kindsOf(OPTIONS['given seal keys'] as object)).toBe(
      'ConfigMap Deployment Lease NetworkPolicy PodDisruptionBudget Role RoleBinding Service ServiceAccount',
    );
    expect(await kindsOf(EVERYTHING)).toBe(
      'ConfigMap Deployment Ingress Lease NetworkPolicy PodDisruptionBudget PodMonitor ResourceQuota Role RoleBinding ScaledObject Secret Service ServiceAccount ServiceMonitor StatefulSet TriggerAuthentication',
    );
  });

  test('starts new workers when their configuration changes', async () => {
    const checksumOf = async (values: object) => {
      const objects = await renderChart(tools, values);
      return objects.find(({ kind }) => kind === 'Deployment')?.spec.template.metadata.annotations['checksum/config'];
    };
    const given = OPTIONS['a given Redis'] as object;
    expect(await checksumOf({ ...given, config: { labels: { zone: 'b' } } })).not.toBe(await checksumOf(given));
  });

  test('leaves the number of workers to an autoscaler that is not its own', async () => {
    const path = join(chartDirectory, '../without-keda/autoscaler.yaml');
    const [autoscaler, ...others] = await parseObjects(tools.load, await readFile(path, 'utf8'));
    expect(await findModelFaults(tools, [autoscaler as ChartObject])).toEqual([]);
    expect(others).toEqual([]);
    const keda = (await renderChart(tools, EVERYTHING)).find(({ kind }) => kind === 'ScaledObject')?.spec;
    const { behavior, metrics } = autoscaler?.spec ?? {};
    expect(behavior).toEqual(keda.advanced.horizontalPodAutoscalerConfig.behavior);
    expect(metrics[0].external.target.averageValue).toBe(keda.triggers[0].metadata.targetValue);
    expect(await readFile(join(checkout, 'docs/telemetry.md'), 'utf8')).toContain(metrics[0].external.metric.name);

    const objects = await renderChart(tools, { ...OPTIONS['a given Redis'], workers: { replicas: null } });
    expect(objects.find(({ kind }) => kind === 'Deployment')?.spec).not.toHaveProperty('replicas');
  });

  test('has the version of the packages', async () => {
    const { version } = JSON.parse(await readFile(join(checkout, 'apps/producer/package.json'), 'utf8'));
    const chart = await readFile(join(chartDirectory, 'Chart.yaml'), 'utf8');
    expect(chart.match(/^(?:version|appVersion): .*$/gm)).toEqual([`version: ${version}`, `appVersion: ${version}`]);
  });

  test('configures workers as they read it, with each option', async () => {
    const values = { ...OPTIONS, everything: EVERYTHING };
    const releases = await Promise.all(Object.values(values).map((one) => renderChart(tools, one)));
    const read = await readAsWorker(releases);
    const names = Object.keys(values);
    expect(read.map((one, index) => (typeof one === 'string' ? `${names[index]}: ${one}` : ''))).toEqual(
      names.map(() => ''),
    );
    expect(read.at(-1)).toMatchObject({
      slots: 500,
      policies: ['kubernetes'],
      kubernetes: {
        namespace: 'sessions-there',
        lease: 'trial-shellfleet',
        serviceAccount: 'trial-shellfleet-session',
        keeper: { image: expect.stringMatching(/^shellfleet\/keeper:\d/), volume: 'init' },
        workspace: { type: 'persistentVolumeClaim', sizeBytes: 10 * 2 ** 30 },
        egress: { host: `trial-shellfleet-egress.${NAMESPACE}.svc`, port: 3128 },
      },
    });
  });

  test('configures the egress proxy as it reads it', async () => {
    const releases = [OPTIONS['the network limited'] as object, EVERYTHING].map((one) => renderChart(tools, one));
    const common = { port: 3128, lookups: 16, logLevel: 'info', sealKeys: [expect.any(String)], privateAddresses: [] };
    expect(await readAsProxy(await Promise.all(releases))).toEqual([
      { ...common, hosts: ['pypi.org'] },
      { ...common, hosts: [] },
    ]);
  });

  test('sets only settings that workers have', async () => {
    const environment = await readFile(join(checkout, 'apps/worker/src/config/environment.ts'), 'utf8');
    const [workers] = (await renderChart(tools, EVERYTHING)).filter(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-worker'),
    );
    const names = workers?.spec.template.spec.containers[0].env.map(({ name }: { name: string }) => name) as string[];
    expect(names.filter((name) => name !== 'HOME' && !environment.includes(`  ${name}:`))).toEqual([]);
  });

  test('sets only settings that the API has', async () => {
    const sources = ['api-settings.ts', 'oidc-settings.ts'].map((name) => join(checkout, 'libs/protocol/src', name));
    const settings = (await Promise.all(sources.map((path) => readFile(path, 'utf8')))).join('');
    const { api } = OPTIONS['what operators add to the API'] as { api: object };
    const values = { ...EVERYTHING, api: { ...api, env: {} } };
    const [deployment] = (await renderChart(tools, values)).filter(
      ({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith('-api'),
    );
    const ofClient = ['HOME', 'SHELLFLEET_NAMESPACE', 'SHELLFLEET_REDIS_URL', 'SHELLFLEET_SEAL_KEY'];
    const names = deployment?.spec.template.spec.containers[0].env.map(
      ({ name }: { name: string }) => name,
    ) as string[];
    expect(names.filter((name) => !ofClient.includes(name) && !settings.includes(`  ${name}:`))).toEqual([]);
  });
});

describe('wrong values', () => {
  const redis = { embedded: { enabled: true } };
  const ingress = { enabled: true, host: 'shell.example' };
  test.for<[object, string]>([
    [
      {},
      'There is no Redis. Name a Secret with its URL in redis.existingSecret.name, or set redis.embedded.enabled=true',
    ],
    [{ redis: { ...redis, existingSecret: { name: 'a' } } }, 'are both set: keep one'],
    [{ redis: { embedded: { enabled: true, persistence: 1 } } }, "at '/redis/embedded/persistence': got number"],
    [{ redis, worker: { replicas: 1 } }, "additional properties 'worker' not allowed"],
    [{ redis, workers: { slots: 'many' } }, "at '/workers/slots': got string, want integer"],
    [{ redis, workers: { slots: 20_000 } }, "at '/workers/slots': maximum: got 20,000, want 10,000"],
    [{ redis, workers: { gracePeriodSeconds: 5 } }, "at '/workers/gracePeriodSeconds': minimum: got 5, want 45"],
    [{ redis, workers: { env: { SHELLFLEET_SEAL_KEY: 'a' } } }, 'Name an existing Secret instead.'],
    [{ redis, workers: { env: { 'not-a-name': 'a' } } }, "invalid propertyName 'not-a-name'"],
    [{ redis, image: { pullPolicy: 'Sometimes' } }, "at '/image/pullPolicy': value must be one of"],
    [{ redis, image: { digest: 'latest' } }, "at '/image/digest': 'latest' does not match pattern"],
    [{ redis, sessions: { port: 80 } }, "at '/sessions/port': minimum: got 80, want 1,024"],
    [{ redis, sessions: { networks: ['all'] } }, "at '/sessions/networks/0': value must be one of"],
    [{ redis, sessions: { networks: ['limited'] } }, 'set egressProxy.enabled=true'],
    [{ redis, sessions: { workspace: { type: 'hostPath' } } }, "at '/sessions/workspace/type': value must be one of"],
    [{ redis, config: { kubernetes: {} } }, 'is made of the values of sessions: set those.'],
    [
      { redis, networkPolicies: { exceptCidrs: ['here'] } },
      "at '/networkPolicies/exceptCidrs/0': 'here' does not match",
    ],
    [{ redis, networkPolicies: { dns: { namespaces: [] } } }, 'name where names are resolved'],
    [{ redis, scaling: { keda: { utilization: 2 } } }, "at '/scaling/keda/utilization': maximum: got 2, want 1"],
    [{ redis, api: { ingress: { enabled: true } } }, 'api.ingress.host is empty'],
    [{ redis, api: { enabled: true, ingress } }, 'so the ingress controller would not reach the API'],
    [{ redis, api: { env: { SHELLFLEET_REDIS_URL: 'a' } } }, 'Name an existing Secret instead.'],
    [
      { redis, api: { oidc: { issuer: 'http://login.example' } } },
      "at '/api/oidc/issuer': 'http://login.example' does",
    ],
    [{ redis, api: { oidc: { issuer: 'https://login.example' } } }, 'api.oidc.audience is empty'],
    [{ redis, api: { oidc: { issuer: 'https://login.example', audience: 'a' } } }, 'one of tenant and tenantClaim'],
    [{ redis, api: { corsOrigins: ['*'] } }, "at '/api/corsOrigins/0': '*' does not match"],
    [{ redis, scaling: { keda: { enabled: true, source: 'api' } } }, 'a Secret with an API key in scaling.keda.apiKey'],
    [{ redis, scaling: { keda: { enabled: true, minReplicas: 9, maxReplicas: 3 } } }, 'is greater than'],
  ])('%j are refused with %j', async ([values, message]) => {
    await expect(renderChart(tools, values)).rejects.toThrow(message);
  });
});
