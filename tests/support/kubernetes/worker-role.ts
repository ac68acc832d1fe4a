import type { Rule } from './api-server/access.ts';

/** What the chart's role allows a worker in the namespace of its Pods, with workspaces on claims. */
export const WORKER_RULES: Rule[] = [
  { apiGroups: [''], resources: ['pods'], verbs: ['create', 'get', 'list', 'watch', 'delete', 'patch'] },
  { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get'] },
  { apiGroups: [''], resources: ['persistentvolumeclaims'], verbs: ['create', 'get', 'list', 'watch', 'delete'] },
];
