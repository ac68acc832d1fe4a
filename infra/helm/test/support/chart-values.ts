/** Values of the chart, as a user gives them. */
export interface ChartValues {
  sessions?: {
    namespace?: string;
    networks?: string[];
    workspace?: { type: string; sizeBytes?: number; storageClass?: string };
    [name: string]: unknown;
  };
  networkPolicies?: { enabled?: boolean; apiClients?: object[]; apiEgress?: object[]; [name: string]: unknown };
  api?: ApiValues;
  [name: string]: unknown;
}

interface ApiValues {
  tls?: { secretName: string };
  ingress?: { host: string; [name: string]: unknown };
  oidc?: { issuer: string; audience: string; tenantClaim?: string };
  [name: string]: unknown;
}

const given = (name: string) => ({ existingSecret: { name: `given-${name}`, key: 'a-key' } });

const INGRESS = { enabled: true, host: 'shell.example' };
const INGRESS_CONTROLLER = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress' } } }];

/** Each option of the chart, alone. Every set of values is complete. */
export const OPTIONS: Record<string, ChartValues> = {
  'a Redis of its own': { redis: { embedded: { enabled: true } } },
  'a Redis without a volume': { redis: { embedded: { enabled: true, persistence: false } } },
  'a given Redis': { redis: given('redis') },
  'given seal keys': { redis: given('redis'), sealKeys: given('keys') },
  'a namespace of sessions': { redis: given('redis'), sessions: { namespace: 'sessions-there' } },
  'another fleet': { redis: given('redis'), fleet: { namespace: 'second' } },
  digests: {
    redis: given('redis'),
    image: { digest: `sha256:${'a'.repeat(64)}` },
    sessions: { keeper: { digest: `sha256:${'b'.repeat(64)}`, volume: 'image' }, pullPolicy: 'Never' },
  },
  'claims as workspaces': {
    redis: given('redis'),
    sessions: { workspace: { type: 'persistentVolumeClaim', sizeBytes: 5_000_000_000, storageClass: 'fast' } },
  },
  'ephemeral volumes as workspaces': { redis: given('redis'), sessions: { workspace: { type: 'ephemeral' } } },
  'what operators add to Pods of sessions': {
    redis: given('redis'),
    sessions: {
      image: 'registry.example/tools:1',
      pullSecrets: ['given-pull'],
      nodeSelector: { pool: 'sessions' },
      tolerations: [{ key: 'sessions', operator: 'Exists', effect: 'NoSchedule' }],
      runtimeClasses: ['gvisor'],
      priorityClass: 'low',
      userNamespaces: true,
      podPidsLimit: 1024,
      resources: ['nvidia.com/gpu'],
      unenforced: ['pids'],
      probes: ['10.0.0.1:10250'],
    },
  },
  'what operators add to workers': {
    redis: given('redis'),
    imagePullSecrets: ['given-pull'],
    workers: {
      replicas: 3,
      slots: 100,
      env: { SHELLFLEET_BATCHES: 0, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' },
      envFrom: [{ secretRef: { name: 'given-more' } }],
      podLabels: { team: 'a' },
      podAnnotations: { note: 'b' },
      nodeSelector: { pool: 'workers' },
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      priorityClassName: 'high',
    },
  },
  'the network full': { redis: given('redis'), sessions: { networks: ['restricted', 'full'] } },
  'the network limited': {
    redis: given('redis'),
    sessions: { networks: ['restricted', 'limited'], hosts: ['pypi.org'] },
    egressProxy: { enabled: true },
  },
  'no NetworkPolicies': { redis: given('redis'), networkPolicies: { enabled: false } },
  'addresses of Redis and the API server': {
    redis: given('redis'),
    networkPolicies: { redis: { cidrs: ['10.2.0.0/16'], ports: [6380] }, apiServer: { cidrs: ['10.1.0.1/32'] } },
  },
  'names resolved elsewhere': {
    redis: given('redis'),
    networkPolicies: { dns: { namespaces: ['openshift-dns'], cidrs: ['169.254.20.10/32'], ports: [5353] } },
  },
  'further sections': {
    redis: given('redis'),
    config: { allow: { modes: ['read-only', 'workspace-write'] }, labels: { zone: 'a' } },
  },
  'a quota': { redis: given('redis'), quota: { enabled: true, hard: { pods: 20, 'requests.cpu': '10' } } },
  'a ServiceMonitor': { redis: given('redis'), metrics: { serviceMonitor: { enabled: true, labels: { a: 'b' } } } },
  'no PodDisruptionBudget': { redis: given('redis'), podDisruptionBudget: { enabled: false } },
  KEDA: { redis: given('redis'), scaling: { keda: { enabled: true } } },
  'the API': { redis: given('redis'), api: { enabled: true } },
  'the API with TLS of its own': { redis: given('redis'), api: { enabled: true, tls: { secretName: 'given-tls' } } },
  'the API behind an Ingress': {
    redis: given('redis'),
    api: { enabled: true, ingress: { ...INGRESS, className: 'nginx', tlsSecretName: 'given-tls' } },
    networkPolicies: { apiClients: INGRESS_CONTROLLER },
  },
  'what operators add to the API': {
    redis: given('redis'),
    networkPolicies: { apiClients: INGRESS_CONTROLLER, apiEgress: [{ ports: [{ port: 4318 }] }] },
    api: {
      enabled: true,
      replicas: 3,
      image: { digest: `sha256:${'c'.repeat(64)}` },
      allowedHosts: ['shell.example'],
      corsOrigins: ['https://pages.example'],
      rateLimit: 50,
      oidc: { issuer: 'https://login.example', audience: 'shellfleet', tenantClaim: 'org' },
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' },
      envFrom: [{ secretRef: { name: 'given-more' } }],
      podLabels: { team: 'a' },
      podAnnotations: { note: 'b' },
      nodeSelector: { pool: 'workers' },
      tolerations: [{ operator: 'Exists' }],
      affinity: { nodeAffinity: {} },
      priorityClassName: 'high',
      service: { type: 'LoadBalancer', annotations: { a: 'b' } },
    },
  },
  'KEDA that asks the API': {
    redis: given('redis'),
    api: { enabled: true },
    scaling: { keda: { enabled: true, source: 'api', apiKey: { name: 'given-api-key', key: 'a-key' } } },
  },
  'KEDA with a given token': { redis: given('redis'), scaling: { ...given('token'), keda: { enabled: true } } },
};

/** Values that make every object of the chart. */
export const EVERYTHING: ChartValues = {
  redis: { embedded: { enabled: true } },
  sessions: {
    namespace: 'sessions-there',
    networks: ['restricted', 'limited', 'full'],
    workspace: { type: 'persistentVolumeClaim' },
  },
  egressProxy: { enabled: true },
  api: { enabled: true, ingress: INGRESS },
  networkPolicies: { apiClients: INGRESS_CONTROLLER },
  quota: { enabled: true },
  metrics: { serviceMonitor: { enabled: true } },
  scaling: { keda: { enabled: true } },
};
