import { lookup } from 'node:dns/promises';
import { resolveSandbox } from '@shellfleet/policy';
import type { ResolvedSessionSpec } from '@shellfleet/protocol';
import { ShellfleetError } from '@shellfleet/protocol';
import { egressKeyOf, signEgress } from '@shellfleet/sealing';
import type { SessionRef } from '../sandbox.ts';

export interface ProxyUrlOptions {
  /** Address of the egress proxy, from the operator's settings. */
  egress: { host: string; port: number };
  sealKey: string;
  /** Time for which the Pod may exist. */
  deadlineMs: number;
}

/**
 * Returns the URL of the egress proxy for a session whose network is limited. The Pod has no DNS, so the URL has an
 * address; that of a Service stays the same while the Service exists.
 */
export async function proxyUrl(
  { namespace, tenant, session }: SessionRef,
  spec: ResolvedSessionSpec,
  { egress: { host, port }, sealKey, deadlineMs }: ProxyUrlOptions,
): Promise<string> {
  const { address, family } = await lookup(host).catch((cause: Error) => {
    throw new ShellfleetError(
      'SANDBOX_UNAVAILABLE',
      `The egress proxy of the fleet cannot be found: ${cause.message}. Check kubernetes.egress.host of SHELLFLEET_CONFIG.`,
      {},
      { cause },
    );
  });
  const token = signEgress(egressKeyOf(sealKey), {
    ...{ namespace, tenant, session, hosts: resolveSandbox(spec).allowedHosts },
    expiresAt: Date.now() + deadlineMs,
  });
  return `http://session:${token}@${family === 6 ? `[${address}]` : address}:${port}`;
}
