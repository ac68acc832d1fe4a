import type { ClusterSettings } from '../src/execution/kubernetes.ts';

const GIB = 2 ** 30;

/** The settings of a cluster whose operator allows nothing but what every session has. */
export const cluster: ClusterSettings = {
  namespace: 'sessions',
  port: 7443,
  keeper: { image: 'registry.example/keeper@sha256:0', volume: 'init' },
  pullPolicy: 'IfNotPresent',
  pullSecrets: [],
  nodeSelector: {},
  tolerations: [],
  userNamespaces: false,
  workspace: { type: 'emptyDir', sizeBytes: 2 * GIB },
  ephemeralStorageBytes: 4 * GIB,
  runtimeClasses: [],
  resources: [],
  unenforced: [],
};
