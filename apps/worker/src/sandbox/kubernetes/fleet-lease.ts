import { toPodLabels } from '@shellfleet/policy';
import { z } from 'zod';
import type { ApiClient, ApiResource } from './api/api-client.ts';
import { isAlreadyThere, isNoObject } from './api/api-errors.ts';

const LEASES: ApiResource = { group: '/apis/coordination.k8s.io/v1', plural: 'leases' };
const leaseSchema = z.object({ metadata: z.object({ name: z.string(), uid: z.string() }) });

/** Reference to the object whose deletion has the cluster delete all Pods of the fleet. */
export interface FleetOwner {
  name: string;
  uid: string;
}

/**
 * Finds the Lease that owns the Pods of a fleet. No worker's own Pod owns them, as sessions outlive workers. Creates it
 * unless the operator names one: that one may be missing because the fleet is being uninstalled.
 */
export async function findFleetOwner(
  client: ApiClient,
  given: string | undefined,
  fleetId: string,
): Promise<FleetOwner> {
  const name = given ?? `shellfleet-${fleetId}`;
  const labels = { 'app.kubernetes.io/managed-by': 'shellfleet', ...toPodLabels({ fleet: fleetId }) };
  const find = () => client.get(LEASES, name, leaseSchema);
  const { metadata } = await find().catch((error: unknown) => {
    if (!isNoObject(error) || given !== undefined) throw error;
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, labels }, spec: {} };
    return client.create(LEASES, lease, leaseSchema).catch((refusal: unknown) => {
      if (isAlreadyThere(refusal)) return find();
      throw refusal;
    });
  });
  return metadata;
}
