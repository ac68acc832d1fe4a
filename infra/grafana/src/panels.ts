import { aggregateOf, quantileOf, rateOf } from './expressions.ts';

export interface Query {
  expr: string;
  legend: string;
}

export interface PanelPlan {
  title: string;
  description: string;
  /** Name of a unit of Grafana. */
  unit: string;
  kind: 'number' | 'graph' | 'stack';
  queries: Query[];
}

export interface RowPlan {
  title: string;
  panels: PanelPlan[];
}

const selector = '{job=~"$job"}';
const within = '$__rate_interval';
const rate = (name: Parameters<typeof rateOf>[0], ...by: string[]) => rateOf(name, { by, within, selector });
const quantile = (share: number, name: Parameters<typeof quantileOf>[1], ...by: string[]) =>
  quantileOf(share, name, { by, within, selector });
const total = (name: Parameters<typeof aggregateOf>[1], ...by: string[]) => aggregateOf('sum', name, { by, selector });
const greatest = (name: Parameters<typeof aggregateOf>[1], ...by: string[]) =>
  aggregateOf('max', name, { by, selector });
const least = (name: Parameters<typeof aggregateOf>[1], ...by: string[]) => aggregateOf('min', name, { by, selector });

const number = (title: string, unit: string, expr: string, description: string): PanelPlan => ({
  ...{ title, description, unit, kind: 'number' },
  queries: [{ expr, legend: title }],
});
const graph = (title: string, unit: string, description: string, ...queries: [legend: string, expr: string][]) =>
  plan('graph', title, unit, description, queries);
const stack = (title: string, unit: string, description: string, ...queries: [legend: string, expr: string][]) =>
  plan('stack', title, unit, description, queries);

function plan(
  kind: PanelPlan['kind'],
  title: string,
  unit: string,
  description: string,
  queries: [legend: string, expr: string][],
): PanelPlan {
  return { title, description, unit, kind, queries: queries.map(([legend, expr]) => ({ legend, expr })) };
}

/** The panels of the dashboard, by row. */
export const ROWS: RowPlan[] = [
  {
    title: 'Fleet',
    panels: [
      number('Hosts up', 'short', greatest('shellfleet_hosts', 'state'), 'Hosts by state, as each worker reads them.'),
      number('Demand', 'short', greatest('shellfleet_demand_sessions'), 'Sessions that hold a slot or wait for one.'),
      number('Free slots', 'short', total('shellfleet_slots_free'), 'Slots of all hosts that no session holds.'),
      number('Hosts that take sessions', 'short', total('shellfleet_ready'), 'Workers whose /readyz answers 200.'),
      number('Commands per second', 'ops', rate('shellfleet_command_duration_seconds_count'), 'Commands that ended.'),
      number(
        'Questions',
        'short',
        total('shellfleet_sessions_asking'),
        'Sessions whose next command waits for a person.',
      ),
    ],
  },
  {
    title: 'Commands',
    panels: [
      stack('Commands by outcome', 'ops', 'Commands that ended, per second.', [
        '{{outcome}}',
        rate('shellfleet_command_duration_seconds_count', 'outcome'),
      ]),
      graph(
        'Wait until the start',
        's',
        'From acceptance to start: turn, slot, person and opening.',
        ['median', quantile(0.5, 'shellfleet_command_wait_seconds')],
        ['p95', quantile(0.95, 'shellfleet_command_wait_seconds')],
        ['p99', quantile(0.99, 'shellfleet_command_wait_seconds')],
      ),
      graph(
        'Duration',
        's',
        'Time for which commands ran.',
        ['median', quantile(0.5, 'shellfleet_command_duration_seconds')],
        ['p95', quantile(0.95, 'shellfleet_command_duration_seconds')],
      ),
      stack('Entries', 'ops', 'Commands, file operations and restarts that ended, per second.', [
        '{{kind}}',
        rate('shellfleet_entries_total', 'kind'),
      ]),
      stack('Errors', 'ops', 'Entries that ended as error, by code.', [
        '{{code}}',
        rate('shellfleet_errors_total', 'code'),
      ]),
      stack('Output', 'Bps', 'Redacted output of commands that ended.', [
        '{{stream}}',
        rate('shellfleet_output_bytes_total', 'stream'),
      ]),
    ],
  },
  {
    title: 'Sessions',
    panels: [
      stack(
        'Slots',
        'short',
        'Sessions that hold a slot, by class, and free slots.',
        ['{{class}}', total('shellfleet_held_sessions', 'class')],
        ['free', total('shellfleet_slots_free')],
      ),
      stack('Waiting by class', 'short', 'Sessions of the fleet that wait for a slot.', [
        '{{class}}',
        `sum by (class) (${greatest('shellfleet_waiting_sessions', 'class', 'tenant')})`,
      ]),
      stack('Waiting by tenant', 'short', 'The tenants of which most wait.', [
        '{{tenant}}',
        `sum by (tenant) (${greatest('shellfleet_waiting_sessions', 'class', 'tenant')})`,
      ]),
      graph(
        'Opening of a shell',
        's',
        'From a pool, or cold.',
        ['p50 {{start}}', quantile(0.5, 'shellfleet_session_opening_seconds', 'start')],
        ['p95 {{start}}', quantile(0.95, 'shellfleet_session_opening_seconds', 'start')],
      ),
      stack('Openings', 'ops', 'Shells that were opened, and openings that failed, per second.', [
        '{{start}}',
        rate('shellfleet_session_opening_seconds_count', 'start'),
      ]),
      graph(
        'Pools',
        'short',
        'Ready sandboxes, and the share of sessions that had one.',
        ['ready {{image}}', total('shellfleet_pool_ready', 'image')],
        ['hits', `${rate('shellfleet_pool_warm_total')} / ${rate('shellfleet_pool_asked_total')}`],
      ),
      graph('Time in a slot', 's', 'Median time for which sessions held their slot.', [
        'median',
        quantile(0.5, 'shellfleet_session_held_seconds'),
      ]),
    ],
  },
  {
    title: 'Tenants',
    panels: [
      stack('Held slots', 'short', 'Sessions that hold a slot.', [
        '{{tenant}}',
        total('shellfleet_held_sessions', 'tenant'),
      ]),
      stack('Processor time', 'short', 'Processors that the sessions of a tenant use.', [
        '{{tenant}}',
        rate('shellfleet_tenant_processor_seconds_total', 'tenant'),
      ]),
      stack('Output by tenant', 'Bps', 'Output of commands.', [
        '{{tenant}}',
        rate('shellfleet_tenant_output_bytes_total', 'tenant'),
      ]),
      stack('Disk by tenant', 'bytes', 'Written by containers of open sessions.', [
        '{{tenant}}',
        total('shellfleet_tenant_disk_bytes', 'tenant'),
      ]),
    ],
  },
  {
    title: 'Safety',
    panels: [
      graph('Denials', 'ops', 'Commands that rules or approvers denied, per second.', [
        '{{by}}',
        rate('shellfleet_denials_total', 'by'),
      ]),
      graph(
        'Questions and findings',
        'ops',
        'Questions to people, and findings of redaction rules, per second.',
        ['questions', rate('shellfleet_questions_total')],
        ['redactions', rate('shellfleet_redactions_total')],
      ),
      graph('Requests to the network', 'ops', 'Requests to the proxies of sessions with a limited network.', [
        '{{verdict}}',
        rate('shellfleet_egress_requests_total', 'verdict'),
      ]),
      graph(
        'Tool calls',
        'ops',
        'Calls that ended, and how long they ran.',
        ['{{outcome}}', rate('shellfleet_tool_call_duration_seconds_count', 'outcome')],
        ['p95 (s)', quantile(0.95, 'shellfleet_tool_call_duration_seconds')],
      ),
    ],
  },
  {
    title: 'Hosts',
    panels: [
      graph('Free memory', 'bytes', 'With less than its reserve, a host takes no session.', [
        '{{instance}}',
        `${least('shellfleet_memory_free_bytes', 'instance')} - ${least('shellfleet_memory_reserve_bytes', 'instance')}`,
      ]),
      graph('Free disk', 'bytes', 'On the disk of the state directory.', [
        '{{instance}}',
        least('shellfleet_disk_free_bytes', 'instance'),
      ]),
      graph('Pressure', 'percentunit', 'Time in which all processes waited.', [
        '{{instance}} {{resource}}',
        greatest('shellfleet_pressure_ratio', 'instance', 'resource'),
      ]),
      graph(
        'Sinks',
        'short',
        'Lines that wait for sinks of the log and the audit, lines that they do not get per second, and 1 while they work.',
        ['waiting {{sink}}', total('shellfleet_sink_waiting_lines', 'sink')],
        ['dropped {{sink}}', rate('shellfleet_sink_dropped_lines_total', 'sink')],
        ['up {{instance}} {{sink}}', least('shellfleet_sink_up', 'instance', 'sink')],
      ),
      graph(
        'Workers',
        'percentunit',
        'Share of time in which the event loop had work, and processors used.',
        ['busy {{instance}}', rate('shellfleet_worker_busy_seconds_total', 'instance')],
        ['processors {{instance}}', rate('shellfleet_worker_cpu_seconds_total', 'instance')],
      ),
      graph('Memory of workers', 'bytes', 'Resident memory of the worker process.', [
        '{{instance}}',
        greatest('shellfleet_worker_resident_bytes', 'instance'),
      ]),
      graph(
        'Running and opening',
        'short',
        'Entries that run, and sandboxes that are being opened.',
        ['running', total('shellfleet_commands_running')],
        ['opening', total('shellfleet_sessions_opening')],
      ),
    ],
  },
  {
    title: 'Redis and leases',
    panels: [
      stack('Calls', 'ops', 'Calls to Redis, by script or command.', [
        '{{call}}',
        `topk(10, ${rate('shellfleet_redis_calls_total', 'call')})`,
      ]),
      graph('Failed calls', 'ops', 'Calls to Redis that failed.', ['failed', rate('shellfleet_redis_failures_total')]),
      graph('Reply', 's', 'Time for the reply to one call.', [
        '{{instance}}',
        greatest('shellfleet_redis_reply_seconds', 'instance'),
      ]),
      graph(
        'Leases',
        'short',
        'Leases that hosts renew, leases lost per second, and detached batches that workers drive.',
        ['held', total('shellfleet_leases')],
        ['lost', rate('shellfleet_leases_lost_total')],
        ['batches', total('shellfleet_batches_driven')],
      ),
      graph('Age of the heartbeat', 's', 'Leases end when a heartbeat is too old.', [
        '{{instance}}',
        greatest('shellfleet_heartbeat_age_seconds', 'instance'),
      ]),
    ],
  },
];
