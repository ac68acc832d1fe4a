import type { Notifier } from '@shellfleet/concurrency';
import { hostKeys, parseWakeUp, type WakeUp } from '@shellfleet/protocol';
import type { HostApprovals } from '../approvals/host-approvals.ts';
import type { SessionHost } from '../run/host-services.ts';
import type { ToolHost } from '../tools/tool-host.ts';
import type { HostedSessions } from './hosted-sessions.ts';

export interface WakeUpTargets {
  sessions: HostedSessions;
  tools: ToolHost;
  approvals: HostApprovals;
  /** Wakes the loop that fetches sessions. */
  jobs: Pick<Notifier, 'notify'>;
  readCalls(): Promise<void>;
  /** Reads the configuration of the fleet. */
  onConfiguration(): Promise<void>;
}

/** Subscribes to all wake-ups for this host, over one connection, and passes each to its target. */
export async function subscribeToWakeUps(
  { connected, fleet, hostId, offers }: SessionHost,
  targets: WakeUpTargets,
): Promise<{ close(): void }> {
  const subscriber = connected.duplicate('subscriber', `shellfleet-worker:${hostId}:wakeups`);
  subscriber.on('message', (_channel: string, message: string) => {
    const wakeUp = parseWakeUp(message);
    if (wakeUp !== undefined) deliver(wakeUp, offers, targets);
  });
  await subscriber.connect();
  const own = hostKeys(fleet.namespace, hostId).wakeUps;
  await subscriber.subscribe(own, fleet.sessionsWakeUps, fleet.toolsWakeUps);
  return { close: () => subscriber.disconnect() };
}

function deliver(
  wakeUp: WakeUp,
  offers: SessionHost['offers'],
  { sessions, tools, jobs, readCalls, onConfiguration, approvals }: WakeUpTargets,
): void {
  switch (wakeUp.type) {
    case 'sessions':
      if (offers.includes(wakeUp.placementClass)) jobs.notify();
      break;
    case 'tool':
      tools.wakeUp(wakeUp.name);
      break;
    case 'answers':
      void approvals.wakeUp(wakeUp.tenant, wakeUp.confirm);
      break;
    case 'configuration':
      void onConfiguration();
      break;
    case 'calls':
      void readCalls();
      break;
    case 'session':
      sessions.find(wakeUp)?.wakeUp(wakeUp.entry);
      break;
    case 'input':
      sessions.find(wakeUp)?.running?.wakeInput();
      break;
    case 'terminal':
      sessions.find(wakeUp)?.wakeTerminal(wakeUp.terminal);
      break;
  }
}
