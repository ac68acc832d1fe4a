import { lookup } from 'node:dns/promises';
import type { KubernetesPlan } from '@shellfleet/policy';
import { ShellfleetError } from '@shellfleet/protocol';
import { egressKeyOf, signEgress } from '@shellfleet/sealing';
import type { SessionRef } from '../sandbox.ts';

type Planned = Pick<KubernetesPlan, 'network' | 'allowedHosts' | 'deadlineMs'> & {
  cluster: Pick<KubernetesPlan['cluster'], 'egress'>;
};

/**
 * Returns the URL of the egress proxy for a session whose network is limited, and undefined for others. The Pod has no
 * DNS, so the URL has an address; that of a Service stays the same while the Service exists.
 */
export async function proxyUrl(
  { namespace, tenant, session }: SessionRef,
  { network, allowedHosts, deadlineMs, cluster: { egress } }: Planned,
  sealKey: string,
): Promise<string | undefined> {
  if (network !== 'limited' || egress === undefined) return undefined;
  const { address, family } = await lookup(egress.host).catch((cause: Error) => {
    throw new ShellfleetError(
      'SANDBOX_UNAVAILABLE',
      `The egress proxy of the fleet cannot be found: ${cause.message}. Check kubernetes.egress.host of SHELLFLEET_CONFIG.`,
      {},
      { cause },
    );
  });
  const token = signEgress(egressKeyOf(sealKey), {
    ...{ namespace, tenant, session, hosts: allowedHosts },
    expiresAt: Date.now() + deadlineMs,
  });
  return `http://session:${token}@${family === 6 ? `[${address}]` : address}:${egress.port}`;
}
