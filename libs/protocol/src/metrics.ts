/** Description of a metric. The names of all metrics begin with `shellfleet_`. */
interface Metric {
  type: 'counter' | 'gauge' | 'histogram';
  labels: readonly string[];
  help: string;
  /** Upper bounds of the buckets of a histogram, in seconds. */
  buckets?: readonly number[];
}

const RUN_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30, 120, 600, 3_600] as const;
const OPEN_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120] as const;
const HELD_SECONDS = [1, 10, 60, 300, 900, 3_600, 14_400, 86_400] as const;

/** Metrics of a worker, by name. docs/telemetry.md has a row for each. */
export const METRICS = {
  shellfleet_command_duration_seconds: {
    type: 'histogram',
    labels: ['outcome'],
    help: 'Time for which a command ran; 0 for one that never started',
    buckets: RUN_SECONDS,
  },
  shellfleet_command_wait_seconds: {
    type: 'histogram',
    labels: ['outcome'],
    help: 'Time from the acceptance of a command to its start: for its turn, a slot, a person, and the opening of the shell',
    buckets: RUN_SECONDS,
  },
  shellfleet_entries_total: {
    type: 'counter',
    labels: ['kind', 'outcome'],
    help: 'Commands, file operations and restarts that this host ended',
  },
  shellfleet_errors_total: {
    type: 'counter',
    labels: ['code'],
    help: 'Entries that ended as `error`, by error code',
  },
  shellfleet_denials_total: {
    type: 'counter',
    labels: ['by'],
    help: 'Entries that `rules` or an `approver` denied',
  },
  shellfleet_output_bytes_total: {
    type: 'counter',
    labels: ['stream'],
    help: 'Redacted output of commands that ended',
  },
  shellfleet_redactions_total: {
    type: 'counter',
    labels: [],
    help: 'Findings of redaction rules in the output of commands that ended',
  },
  shellfleet_commands_running: {
    type: 'gauge',
    labels: [],
    help: 'Entries that run on this host',
  },
  shellfleet_slots: { type: 'gauge', labels: [], help: 'Slots of this host' },
  shellfleet_slots_free: { type: 'gauge', labels: [], help: 'Slots of this host that no session holds' },
  shellfleet_held_sessions: {
    type: 'gauge',
    labels: ['class', 'tenant'],
    help: 'Sessions that hold a slot of this host',
  },
  shellfleet_session_held_seconds: {
    type: 'histogram',
    labels: [],
    help: 'Time for which a session that ended or left held its slot',
    buckets: HELD_SECONDS,
  },
  shellfleet_session_opening_seconds: {
    type: 'histogram',
    labels: ['start'],
    help: 'Time for opening a shell: `warm` from a pool, `cold`, or `failed`',
    buckets: OPEN_SECONDS,
  },
  shellfleet_sessions_opening: {
    type: 'gauge',
    labels: [],
    help: 'Sandboxes of sessions and pools that this host opens, or that wait for that',
  },
  shellfleet_sessions_asking: {
    type: 'gauge',
    labels: [],
    help: 'Sessions of this host with a shell whose next command waits for an approval',
  },
  shellfleet_questions_total: {
    type: 'counter',
    labels: [],
    help: 'Questions that sessions and tool calls of this host asked people',
  },
  shellfleet_waiting_sessions: {
    type: 'gauge',
    labels: ['class', 'tenant'],
    help: 'Sessions of the whole fleet that wait for a slot; the same value at each worker',
  },
  shellfleet_demand_sessions: {
    type: 'gauge',
    labels: [],
    help: 'Sessions of the whole fleet that hold a slot or wait for one; the same value at each worker',
  },
  shellfleet_hosts: {
    type: 'gauge',
    labels: ['state'],
    help: 'Hosts of the whole fleet: `up`, `draining` or `unreachable`; the same value at each worker',
  },
  shellfleet_batches_driven: { type: 'gauge', labels: [], help: 'Detached batches that this worker drives' },
  shellfleet_leases: { type: 'gauge', labels: [], help: 'Leases that this host renews' },
  shellfleet_leases_lost_total: {
    type: 'counter',
    labels: [],
    help: 'Leases that another host has, or may have, though this one did not give them up',
  },
  shellfleet_heartbeat_age_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Time since Redis stored the last heartbeat of this host',
  },
  shellfleet_pool_ready: {
    type: 'gauge',
    labels: ['image', 'network'],
    help: 'Sandboxes of a pool that are ready for a session',
  },
  shellfleet_pool_asked_total: {
    type: 'counter',
    labels: ['image', 'network'],
    help: 'Sessions that could have had a sandbox of the pool',
  },
  shellfleet_pool_warm_total: {
    type: 'counter',
    labels: ['image', 'network'],
    help: 'Sessions that had one',
  },
  shellfleet_tenant_processor_seconds_total: {
    type: 'counter',
    labels: ['tenant'],
    help: 'Processor time of the sessions of a tenant on this host',
  },
  shellfleet_tenant_output_bytes_total: {
    type: 'counter',
    labels: ['tenant'],
    help: 'Output of the commands of a tenant on this host',
  },
  shellfleet_tenant_disk_bytes: {
    type: 'gauge',
    labels: ['tenant'],
    help: 'Bytes that containers of open sessions of a tenant have written, as measured last',
  },
  shellfleet_redis_up: { type: 'gauge', labels: [], help: '1 if Redis answered this scrape, else 0' },
  shellfleet_redis_reply_seconds: {
    type: 'gauge',
    labels: [],
    help: 'Time for the reply to one call, measured in this scrape',
  },
  shellfleet_redis_calls_total: {
    type: 'counter',
    labels: ['call'],
    help: 'Calls to Redis, by script or command',
  },
  shellfleet_redis_failures_total: {
    type: 'counter',
    labels: [],
    help: 'Calls to Redis that failed',
  },
  shellfleet_egress_requests_total: {
    type: 'counter',
    labels: ['verdict'],
    help: 'Requests to proxies of sessions with a limited network: `passed` or `refused`',
  },
  shellfleet_tool_call_duration_seconds: {
    type: 'histogram',
    labels: ['outcome'],
    help: 'Time for which a tool call ran, by `success` or the code of its error',
    buckets: RUN_SECONDS,
  },
  shellfleet_sink_up: {
    type: 'gauge',
    labels: ['sink'],
    help: '1 if a sink, `log` or `audit`, took the last lines, else 0',
  },
  shellfleet_sink_waiting_lines: {
    type: 'gauge',
    labels: ['sink'],
    help: 'Lines that wait for a sink',
  },
  shellfleet_sink_dropped_lines_total: {
    type: 'counter',
    labels: ['sink'],
    help: 'Lines that a sink does not get: the log had no room for more, or the audit removed them for their age',
  },
  shellfleet_memory_free_bytes: {
    type: 'gauge',
    labels: [],
    help: 'Memory of this host that programs could use without swapping',
  },
  shellfleet_memory_reserve_bytes: {
    type: 'gauge',
    labels: [],
    help: 'Memory that this host keeps free; with less of it, it takes no session',
  },
  shellfleet_disk_free_bytes: {
    type: 'gauge',
    labels: [],
    help: 'Free space on the disk of the state directory',
  },
  shellfleet_pressure_ratio: {
    type: 'gauge',
    labels: ['resource'],
    help: 'Share of time in which all processes waited for `memory` (of 10 s) or `io` (of 60 s)',
  },
  shellfleet_ready: { type: 'gauge', labels: [], help: '1 if this host takes sessions, else 0' },
  shellfleet_worker_info: { type: 'gauge', labels: ['host', 'version'], help: 'Always 1' },
  shellfleet_worker_cpu_seconds_total: {
    type: 'counter',
    labels: [],
    help: 'Processor time of the worker process',
  },
  shellfleet_worker_busy_seconds_total: {
    type: 'counter',
    labels: [],
    help: 'Time for which the event loop of the worker process had work; near 1 a second, sessions wait for it',
  },
  shellfleet_worker_resident_bytes: {
    type: 'gauge',
    labels: [],
    help: 'Memory of the worker process',
  },
} as const satisfies Record<`shellfleet_${string}`, Metric>;

export type MetricName = keyof typeof METRICS;

/** Names of the metrics of one type. */
export type MetricNameOf<Type extends Metric['type']> = {
  [Name in MetricName]: (typeof METRICS)[Name]['type'] extends Type ? Name : never;
}[MetricName];

/** Names of the labels of a metric. */
export type MetricLabel<Name extends MetricName> = (typeof METRICS)[Name]['labels'][number];
