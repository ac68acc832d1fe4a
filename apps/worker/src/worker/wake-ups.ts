import type { Notifier } from '@shellfleet/concurrency';
import { hostKeys, parseWakeUp, type WakeUp, wakeUpsChannel } from '@shellfleet/protocol';
import type { HostApprovals } from '../approvals/host-approvals.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { ToolHost } from '../tools/tool-host.ts';
import type { FollowedTenants } from './followed-tenants.ts';
import type { HostedSessions } from './hosted-sessions.ts';

export interface WakeUpTargets {
  sessions: HostedSessions;
  tools: ToolHost;
  approvals: HostApprovals;
  /** Wakes the loop that fetches sessions. */
  jobs: Pick<Notifier, 'notify'>;
  /** Looks for detached batches. */
  batches: Pick<Notifier, 'notify'>;
  readCalls(): Promise<void>;
  /** Reads the configuration of the fleet. */
  onConfiguration(): Promise<void>;
}

/**
 * Subscribes to all wake-ups for this host, over one connection, and passes each to its target. Those of a tenant's
 * sessions come over a channel of the tenant, which clients of other tenants may not use.
 */
export async function subscribeToWakeUps(
  host: SessionHost,
  tenants: FollowedTenants,
  targets: WakeUpTargets,
): Promise<{ close(): void }> {
  const { connected, fleet, hostId } = host;
  const subscriber = connected.duplicate('subscriber', `shellfleet-worker:${hostId}:wakeups`);
  const own = hostKeys(fleet.namespace, hostId).wakeUps;
  const shared = [own, fleet.sessionsWakeUps, fleet.toolsWakeUps];
  const channelOf = (tenant: string) => wakeUpsChannel(fleet.namespace, tenant, hostId);
  subscriber.on('message', (channel: string, message: string) => {
    const wakeUp = parseWakeUp(message);
    if (wakeUp === undefined) return;
    if (!isAboutSession(wakeUp)) deliver(wakeUp, host, targets);
    else if (channel === channelOf(wakeUp.tenant)) deliverToSession(wakeUp, targets);
  });
  await subscriber.connect();
  await subscriber.subscribe(...shared);
  // A call fails with its connection. When that is ready again, the host subscribes to all.
  const ignore = () => {};
  tenants.start({
    subscribe: (tenant) => void subscriber.subscribe(channelOf(tenant)).catch(ignore),
    unsubscribe: (tenant) => void subscriber.unsubscribe(channelOf(tenant)).catch(ignore),
  });
  subscriber.on('ready', () => tenants.subscribeAgain());
  return { close: () => subscriber.disconnect() };
}

type SessionWakeUp = Extract<WakeUp, { session: string }>;

const isAboutSession = (wakeUp: WakeUp): wakeUp is SessionWakeUp => 'session' in wakeUp;

function deliverToSession(wakeUp: SessionWakeUp, { sessions }: WakeUpTargets): void {
  const session = sessions.find(wakeUp);
  switch (wakeUp.type) {
    case 'session':
      session?.wakeUp(wakeUp.entry);
      break;
    case 'input':
      session?.running?.wakeInput();
      break;
    case 'terminal':
      session?.wakeTerminal(wakeUp.terminal);
      break;
  }
}

function deliver(
  wakeUp: Exclude<WakeUp, SessionWakeUp>,
  host: Pick<SessionHost, 'offers'>,
  { tools, jobs, batches, readCalls, onConfiguration, approvals }: WakeUpTargets,
): void {
  switch (wakeUp.type) {
    case 'sessions':
      if (host.offers(wakeUp.placementClass)) jobs.notify();
      break;
    case 'tool':
      tools.wakeUp(wakeUp.name);
      break;
    case 'answers':
      void approvals.wakeUp(wakeUp.tenant, wakeUp.confirm);
      break;
    case 'batches':
      batches.notify();
      break;
    case 'configuration':
      void onConfiguration();
      break;
    case 'calls':
      void readCalls();
      break;
  }
}
