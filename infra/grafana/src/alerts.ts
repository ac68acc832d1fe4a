import { stringify } from 'yaml';
import { aggregateOf, quantileOf, rateOf } from './expressions.ts';

/** An alert that fires when a value is above or below a bound for some time. */
export interface AlertPlan {
  name: string;
  /** PromQL without the comparison: it has data also while nothing is wrong. */
  value: string;
  comparison: `${'>' | '<'} ${number}`;
  /** How long the comparison must hold. */
  lasting: string;
  severity: 'critical' | 'warning' | 'info';
  summary: string;
  /** What to do. */
  description: string;
}

const within = '10m';
const perJob = ['job'];
const perWorker = ['job', 'instance'];
const share = (part: string, whole: string) => `${part} / ${whole}`;
const entries = (selector?: string) =>
  rateOf('shellfleet_entries_total', { by: perJob, within, ...(selector && { selector }) });
const openings = (selector?: string) =>
  rateOf('shellfleet_session_opening_seconds_count', { by: perJob, within, ...(selector && { selector }) });

export const ALERTS: AlertPlan[] = [
  {
    name: 'ShellfleetHostUnreachable',
    value: aggregateOf('max', 'shellfleet_hosts', { by: perJob, selector: '{state="unreachable"}' }),
    comparison: '> 0',
    lasting: '1m',
    severity: 'critical',
    summary: 'Hosts of {{ $labels.job }} that are unreachable: {{ $value }}.',
    description: '`shellfleet hosts ls` names them. When their leases end, running commands there are lost.',
  },
  {
    name: 'ShellfleetHostNotReady',
    value: aggregateOf('min', 'shellfleet_ready', { by: perWorker }),
    comparison: '< 1',
    lasting: '10m',
    severity: 'warning',
    summary: '{{ $labels.instance }} takes no sessions.',
    description: 'Its /readyz and `shellfleet hosts ls` give the reason.',
  },
  {
    name: 'ShellfleetRedisAway',
    value: aggregateOf('min', 'shellfleet_redis_up', { by: perWorker }),
    comparison: '< 1',
    lasting: '30s',
    severity: 'critical',
    summary: 'Redis does not answer {{ $labels.instance }}.',
    description: 'Commands go on until their output has no more room; nothing new starts.',
  },
  {
    name: 'ShellfleetHeartbeatOld',
    value: aggregateOf('max', 'shellfleet_heartbeat_age_seconds', { by: perWorker }),
    comparison: '> 5',
    lasting: '15s',
    severity: 'critical',
    summary: 'The last heartbeat of {{ $labels.instance }} is {{ $value | humanizeDuration }} old.',
    description: 'The fleet counts it as unreachable, and its leases will end.',
  },
  {
    name: 'ShellfleetLeasesLost',
    value: rateOf('shellfleet_leases_lost_total', { by: perJob, within }),
    comparison: '> 0',
    lasting: '0s',
    severity: 'warning',
    summary: 'A host of {{ $labels.job }} lost leases that it had not given up.',
    description: 'Its worker was suspended or without Redis for longer than the grace of the sessions.',
  },
  {
    name: 'ShellfleetCommandsLost',
    value: entries('{outcome="lost"}'),
    comparison: '> 0',
    lasting: '0s',
    severity: 'warning',
    summary: 'Commands of {{ $labels.job }} were lost.',
    description: 'Whether they took effect is not known. Their Results name the reason.',
  },
  {
    name: 'ShellfleetErrors',
    value: share(entries('{outcome="error"}'), entries()),
    comparison: '> 0.05',
    lasting: '10m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the entries of {{ $labels.job }} end as error.',
    description: 'shellfleet_errors_total has them by code; docs/errors.md has what to do.',
  },
  {
    name: 'ShellfleetOpeningsFail',
    value: share(openings('{start="failed"}'), openings()),
    comparison: '> 0.1',
    lasting: '10m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the shells of {{ $labels.job }} cannot be opened.',
    description: 'The log has session.start-failed with the reason: an image, the engine, or startup commands.',
  },
  {
    name: 'ShellfleetCommandsWait',
    value: quantileOf(0.95, 'shellfleet_command_wait_seconds', { by: perJob, within }),
    comparison: '> 60',
    lasting: '15m',
    severity: 'warning',
    summary: 'One in twenty commands of {{ $labels.job }} waits for more than {{ $value | humanizeDuration }}.',
    description: '`shellfleet top` says why sessions wait: slots, quotas, memory, or a person.',
  },
  {
    name: 'ShellfleetSlotsTaken',
    value: share(
      aggregateOf('sum', 'shellfleet_slots_free', { by: perJob }),
      aggregateOf('sum', 'shellfleet_slots', { by: perJob }),
    ),
    comparison: '< 0.05',
    lasting: '15m',
    severity: 'warning',
    summary: '{{ $value | humanizePercentage }} of the slots of {{ $labels.job }} are free.',
    description: 'Add hosts, or give tenants quotas.',
  },
  {
    name: 'ShellfleetMemoryShort',
    value: `min by (job, instance) (shellfleet_memory_free_bytes / shellfleet_memory_reserve_bytes)`,
    comparison: '< 1.2',
    lasting: '10m',
    severity: 'warning',
    summary: '{{ $labels.instance }} has little more memory than it keeps free.',
    description: 'It takes no sessions below its reserve, SHELLFLEET_MIN_FREE_MEMORY.',
  },
  {
    name: 'ShellfleetDiskShort',
    value: aggregateOf('min', 'shellfleet_disk_free_bytes', { by: perWorker }),
    comparison: '< 2147483648',
    lasting: '10m',
    severity: 'warning',
    summary: '{{ $labels.instance }} has {{ $value | humanize1024 }}B of free disk.',
    description: 'Below SHELLFLEET_MIN_FREE_DISK it takes no sessions. `shellfleet images prune` removes images.',
  },
  {
    name: 'ShellfleetWorkerBusy',
    value: rateOf('shellfleet_worker_busy_seconds_total', { by: perWorker, within: '5m' }),
    comparison: '> 0.9',
    lasting: '10m',
    severity: 'warning',
    summary: 'The worker of {{ $labels.instance }} has no time left.',
    description: 'Its sessions wait for it. Lower its slots, or add hosts.',
  },
  {
    name: 'ShellfleetQuestionsWait',
    value: aggregateOf('sum', 'shellfleet_sessions_asking', { by: perJob }),
    comparison: '> 0',
    lasting: '30m',
    severity: 'info',
    summary: 'Sessions of {{ $labels.job }} that wait for a person: {{ $value }}.',
    description: '`shellfleet approvals ls` lists the questions.',
  },
];

/** Returns the rules as a file for Prometheus. */
export function writeAlerts(): string {
  const rules = ALERTS.map(({ name, value, comparison, lasting, severity, summary, description }) => ({
    alert: name,
    expr: `${value} ${comparison}`,
    for: lasting,
    labels: { severity },
    annotations: { summary, description },
  }));
  return `# Written by \`npm run grafana\`.\n${stringify({ groups: [{ name: 'shellfleet', rules }] }, { lineWidth: 0 })}`;
}
