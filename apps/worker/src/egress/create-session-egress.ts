import { resolveSandbox } from '@shellfleet/policy';
import { isMovable, type ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Logger } from '../log/logger.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import { createAddressCheck } from './addresses.ts';
import { createEgressLog } from './egress-log.ts';
import { createResolveName, type ResolveName } from './resolve-name.ts';
import { type RefusedEgress, SessionEgress } from './session-egress.ts';

/** What the operator of this host permits to all sessions together. */
export interface EgressSettings {
  hosts: readonly string[];
  privateAddresses: readonly string[];
  /** Resolves a name to addresses. Default: the system's resolver. */
  resolveName?: ResolveName;
}

interface EgressReports {
  logger: Logger;
  metrics?: Pick<WorkerMetrics, 'egress'> | undefined;
  onRefused(refused: RefusedEgress): void;
}

/** Creates the proxy of a session. Returns undefined if its network is not `limited`, or the fleet has its proxy. */
export function createSessionEgress(
  spec: ResolvedSessionSpec,
  settings: EgressSettings,
  { logger, metrics, onRefused }: EgressReports,
): SessionEgress | undefined {
  const { network, allowedHosts } = resolveSandbox(spec);
  if (network !== 'limited' || isMovable(spec.policy.type)) return undefined;
  const rules = {
    allowedHosts,
    hosts: settings.hosts,
    mayConnectTo: createAddressCheck(settings.privateAddresses),
    resolveName: settings.resolveName ?? createResolveName(),
  };
  const log = createEgressLog(logger);
  return new SessionEgress({
    rules,
    onRequest({ refusal, ...request }) {
      metrics?.egress(refusal === undefined ? 'passed' : 'refused');
      log({ ...request, ...(refusal === undefined ? {} : { refusal }) });
      if (refusal !== undefined) onRefused({ ...request, refusal });
    },
  });
}
