import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type ChartTools, chartTools } from '../../../scripts/testing/chart-tools.ts';
import { findFaults } from './find-faults.ts';
import { EVERYTHING } from './support/chart-values.ts';
import { chartDirectory, renderChart } from './support/render-chart.ts';

let tools: ChartTools;
beforeAll(async () => {
  tools = await chartTools();
}, 300_000);

/** Returns the faults of the chart after a text of one template has been replaced. */
async function faultsOfMutant(template: string, text: string, replacement: string): Promise<string[]> {
  const chart = await mkdtemp(join(tmpdir(), 'sf-chart-'));
  onTestFinished(() => rm(chart, { recursive: true }));
  await cp(chartDirectory, chart, { recursive: true });
  const path = join(chart, 'templates', template);
  const source = await readFile(path, 'utf8');
  expect(source).toContain(text);
  await writeFile(
    path,
    source.replaceAll(text, () => replacement),
  );
  return findFaults(tools, await renderChart(tools, EVERYTHING, { chart }), EVERYTHING);
}

const pods: [string, string][] = [
  ['privileged: false', 'privileged: true'],
  ['privileged: false', ''],
  ['allowPrivilegeEscalation: false', 'allowPrivilegeEscalation: true'],
  ['allowPrivilegeEscalation: false', ''],
  ['readOnlyRootFilesystem: true', 'readOnlyRootFilesystem: false'],
  ['drop: [ALL]', 'drop: [NET_RAW]'],
  ['drop: [ALL]', 'drop: [ALL], add: [SYS_ADMIN]'],
  ['capabilities: { drop: [ALL] }', ''],
  ['runAsNonRoot: true', 'runAsNonRoot: false'],
  ['runAsUser: {{ . }}', 'runAsUser: 0'],
  ['runAsGroup: {{ . }}', 'runAsGroup: 0'],
  ['seccompProfile: { type: RuntimeDefault }', 'seccompProfile: { type: Unconfined }'],
  ['seccompProfile: { type: RuntimeDefault }', ''],
  ['enableServiceLinks: false', 'enableServiceLinks: true'],
  ['enableServiceLinks: false', 'hostNetwork: true'],
  ['enableServiceLinks: false', 'hostPID: true'],
  ['runAsNonRoot: true', 'runAsNonRoots: true'],
];
const configMap =
  'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ $name }}-a\n  namespace: {{ .Release.Namespace }}\ndata:\n';
const others: [string, string, string][] = [
  ['workers.yaml', 'emptyDir: { sizeLimit: {{ .Values.workers.stateSize }} }', 'emptyDir: {}'],
  ['workers.yaml', 'emptyDir: { sizeLimit: {{ .Values.workers.stateSize }} }', 'hostPath: { path: /var/lib }'],
  ['workers.yaml', 'mountPath: /etc/shellfleet, readOnly: true', 'mountPath: /etc/shellfleet'],
  ['workers.yaml', 'containerPort: {{ .Values.metrics.port }}', 'containerPort: 9464, hostPort: 9464'],
  ['workers.yaml', 'serviceAccountName: {{ $name }}-worker', 'serviceAccountName: {{ $name }}-session'],
  ['workers.yaml', 'terminationGracePeriodSeconds: {{', 'terminationGracePeriodSeconds: 10 #{{'],
  ['workers.yaml', 'maxUnavailable: 0, maxSurge: 1', 'maxUnavailable: 1, maxSurge: 0'],
  ['workers.yaml', 'minReadySeconds: 5', ''],
  ['workers.yaml', 'path: /readyz', 'path: /healthz'],
  ['redis.yaml', 'automountServiceAccountToken: false', ''],
  ['redis.yaml', 'secretName: {{ $name }}', 'secretName: {{ $name }}s'],
  ['accounts.yaml', 'resources: [pods]', "resources: ['*']"],
  ['accounts.yaml', 'resources: [pods]', 'resources: [pods, pods/exec]'],
  ['accounts.yaml', 'resources: [pods]', 'resources: [pods, secrets]'],
  ['accounts.yaml', 'verbs: [create, get, list, watch, delete, patch]', "verbs: ['*']"],
  ['accounts.yaml', 'verbs: [create, get]', 'verbs: [create, get, update]'],
  ['accounts.yaml', 'verbs: [list, watch]', 'verbs: [list, watch, delete]'],
  ['accounts.yaml', 'kind: Role\n', 'kind: ClusterRole\n'],
  ['accounts.yaml', 'kind: RoleBinding', 'kind: ClusterRoleBinding'],
  [
    'accounts.yaml',
    'name: {{ $name }}-worker\n    namespace: {{ .Release',
    'name: default\n    namespace: {{ .Release',
  ],
  ['accounts.yaml', 'automountServiceAccountToken: false', 'automountServiceAccountToken: true'],
  ['lease.yaml', 'kind: Lease', 'kind: Leases'],
  ['lease.yaml', '{{ include "shellfleet.sessionsNamespace" . }}', '{{ .Release.Namespace }}'],
  ['secrets.yaml', '  users.acl:', `---\n${configMap}  a: {{ $password }}\n---\n${configMap}  b:`],
  ['network-policies.yaml', 'policyTypes: [Ingress, Egress]', 'policyTypes: [Ingress]'],
  ['network-policies.yaml', 'podSelector: {}', 'podSelector: { matchLabels: { a: b } }'],
  ['network-policies.yaml', '  egress: []\n{{- if has "full"', '  egress: [{}]\n{{- if has "full"'],
  ['network-policies.yaml', 'ports: [{ protocol: TCP, port: {{ .Values.sessions.port }} }]', ''],
  ['network-policies.yaml', 'shellfleet.dev/network: full', 'shellfleet.dev/network: restricted'],
  ['network-policies.yaml', 'shellfleet.dev/network: limited\n  policyTypes', 'a: b\n  policyTypes'],
  ['network-policies.yaml', '{{- include "shellfleet.addresses" $policies.apiServer | nindent 4 }}', '- {}'],
  ['network-policies.yaml', '(include "shellfleet.selector" $redis)', '"a: b"'],
  [
    '_network.tpl',
    'namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: {{ .namespace }} } }',
    'namespaceSelector: {}',
  ],
  ['network-policies.yaml', '{{- if .Values.api.oidc.issuer }}', '{{- if true }}\n    - {}'],
  ['network-policies.yaml', '{{- with $policies.apiClients }}{{ toYaml . | nindent 8 }}{{ end }}', '- podSelector: {}'],
  ['network-policies.yaml', 'port: {{ .Values.api.port }}', 'port: {{ .Values.metrics.port }}'],
  ['api.yaml', 'port: metrics }\n            periodSeconds: 2', 'port: api }\n            periodSeconds: 2'],
  ['api.yaml', "lifecycle: { preStop: { exec: { command: [sleep, '5'] } } }", ''],
  ['api.yaml', "command: [sleep, '5']", "command: [sh, -c, 'true']"],
  ['api.yaml', 'maxUnavailable: 0, maxSurge: 1', 'maxUnavailable: 1, maxSurge: 0'],
  ['api.yaml', 'automountServiceAccountToken: false', 'automountServiceAccountToken: true'],
  ['api.yaml', 'targetPort: api }', 'targetPort: metrics }'],
  ['api.yaml', '- hosts: [{{ $api.ingress.host | quote }}]', '- hosts: [other.example]'],
  ['api.yaml', '{{- with $api.ingress.annotations }}{{ toYaml . | nindent 4 }}{{ end }}', 'a: b'],
  ['_api-env.tpl', '{{ $names = append $names .host }}', ''],
  ['_api-env.tpl', '"SHELLFLEET_API_METRICS_HOST" "::"', '"SHELLFLEET_API_METRICS_HOST" "127.0.0.1"'],
  ['_api-env.tpl', '"SHELLFLEET_API_INSECURE_HTTP" "1"', '"SHELLFLEET_API_INSECURE_HTTP" "0"'],
  ['_network.tpl', 'except: {{- toYaml . | nindent 10 }}', ''],
  ['_worker-env.tpl', '"SHELLFLEET_POLICIES" "kubernetes"', '"SHELLFLEET_POLICIES" "host"'],
  ['scaling.yaml', 'behavior: currentReplicasIfHigher', 'behavior: static'],
  ['scaling.yaml', 'stabilizationWindowSeconds: 600', 'stabilizationWindowSeconds: 0'],
  ['scaling.yaml', 'authMode: bearer', ''],
  ['scaling.yaml', 'valueLocation: demand', 'valueLocation: waiting'],
];

describe('the checks of the chart', () => {
  test.for([...pods.map((pair) => ['_pods.tpl', ...pair] as const), ...others])(
    'notice that %s has %j replaced by %j',
    async ([template, text, replacement]) => {
      expect(await faultsOfMutant(template, text, replacement)).not.toEqual([]);
    },
  );

  test('find nothing in the chart as it is', async () => {
    expect(await faultsOfMutant('lease.yaml', 'kind: Lease', 'kind: Lease')).toEqual([]);
  });
});
