import type { ChartTools } from '../../../scripts/testing/chart-tools.ts';
import { findApiFaults } from './checks/api.ts';
import { findModelFaults } from './checks/models.ts';
import { findNetworkFaults } from './checks/networks.ts';
import { findPlaceFaults } from './checks/places.ts';
import { findPodFaults } from './checks/pods.ts';
import { findRightsFaults } from './checks/rights.ts';
import { findSecretFaults } from './checks/secrets.ts';
import { findWorkerFaults } from './checks/workers.ts';
import type { ChartValues } from './support/chart-values.ts';
import { type ChartObject, NAMESPACE } from './support/render-chart.ts';

/** Returns everything that is wrong with the objects that the chart makes of the values. */
export async function findFaults(
  tools: ChartTools,
  objects: readonly ChartObject[],
  { sessions = {}, networkPolicies = {}, api = {} }: ChartValues,
): Promise<string[]> {
  const { apiClients = [], apiEgress = [] } = networkPolicies;
  const sessionsNamespace = sessions.namespace ?? NAMESPACE;
  const networks = sessions.networks ?? ['restricted'];
  const hasPolicies = networkPolicies.enabled !== false;
  return [
    ...(await findModelFaults(tools, objects)),
    ...findPlaceFaults(objects, sessionsNamespace),
    ...findPodFaults(objects),
    ...findRightsFaults(objects, { hasClaims: sessions.workspace?.type === 'persistentVolumeClaim' }),
    ...findSecretFaults(objects),
    ...findWorkerFaults(objects),
    ...findApiFaults(objects, api),
    ...(hasPolicies ? findNetworkFaults(objects, { sessionsNamespace, networks, apiClients, apiEgress }) : []),
  ];
}
