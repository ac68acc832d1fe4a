import { ALERTS, type AlertPlan } from './alerts.ts';

// Fleets of two workers as Prometheus sees them, one sample of each series every 30 s from the start on.

const SAMPLE_SECONDS = 30;
const SAMPLES = 80;
/** Longest window of a rate that an alert compares with a number. */
const LONGEST_WINDOW_SECONDS = 300;
/** Series of one worker without the labels of its scrape, and their values in the notation of promtool. */
type Series = Record<string, string>;

const steady = (value: number) => `${value}+0x${SAMPLES}`;
const growing = (perSample: number) => `0+${perSample}x${SAMPLES}`;
/** Returns a counter of a worker that starts again after half of the samples. */
const restarted = (perSample: number) => `0+${perSample}x${SAMPLES / 2} 0+${perSample}x${SAMPLES / 2}`;

/** Returns the series of a worker that has as much to do as no alert is about. `grows` is the form of its counters. */
const busyWorker = (grows: typeof growing): Series => ({
  'shellfleet_hosts{state="up"}': steady(2),
  'shellfleet_hosts{state="unreachable"}': steady(0),
  shellfleet_ready: steady(1),
  shellfleet_redis_up: steady(1),
  shellfleet_heartbeat_age_seconds: steady(4),
  shellfleet_leases_lost_total: steady(0),
  'shellfleet_entries_total{kind="command",outcome="success"}': grows(93),
  'shellfleet_entries_total{kind="command",outcome="failure"}': grows(3),
  'shellfleet_entries_total{kind="file",outcome="error"}': grows(4),
  'shellfleet_entries_total{kind="command",outcome="lost"}': steady(0),
  'shellfleet_session_opening_seconds_count{start="cold"}': grows(11),
  'shellfleet_session_opening_seconds_count{start="failed"}': grows(1),
  'shellfleet_command_wait_seconds_bucket{outcome="success",le="30"}': grows(96),
  'shellfleet_command_wait_seconds_bucket{outcome="success",le="120"}': grows(100),
  'shellfleet_command_wait_seconds_bucket{outcome="success",le="+Inf"}': grows(100),
  shellfleet_slots: steady(20),
  shellfleet_slots_free: steady(2),
  shellfleet_memory_free_bytes: steady(1_300),
  shellfleet_memory_reserve_bytes: steady(1_000),
  shellfleet_disk_free_bytes: steady(3 * 2 ** 30),
  shellfleet_worker_busy_seconds_total: grows(0.8 * SAMPLE_SECONDS),
  shellfleet_sessions_asking: steady(0),
});

const HEALTHY = {
  'a busy fleet': busyWorker(growing),
  'an idle fleet': busyWorker(() => steady(0)),
  'a fleet whose workers were restarted': busyWorker(restarted),
};

interface Fault {
  /** Series of a busy worker that are different. An alert about one worker has them at the second one only. */
  series: Series;
  /** Summary of the alert that fires. No other does. */
  summary: string;
}

const FAULTS: Record<string, Fault> = {
  ShellfleetHostUnreachable: {
    series: { 'shellfleet_hosts{state="unreachable"}': steady(1) },
    summary: 'Hosts of fleet that are unreachable: 1.',
  },
  ShellfleetHostNotReady: {
    series: { shellfleet_ready: steady(0) },
    summary: 'h2:9464 takes no sessions.',
  },
  ShellfleetRedisAway: {
    series: { shellfleet_redis_up: steady(0) },
    summary: 'Redis does not answer h2:9464.',
  },
  ShellfleetHeartbeatOld: {
    series: { shellfleet_heartbeat_age_seconds: steady(6.123456) },
    summary: 'The last heartbeat of h2:9464 is 6.123s old.',
  },
  ShellfleetLeasesLost: {
    series: { shellfleet_leases_lost_total: growing(1) },
    summary: 'A host of fleet lost leases that it had not given up.',
  },
  ShellfleetCommandsLost: {
    series: { 'shellfleet_entries_total{kind="command",outcome="lost"}': growing(1) },
    summary: 'Commands of fleet were lost.',
  },
  ShellfleetErrors: {
    series: { 'shellfleet_entries_total{kind="file",outcome="error"}': growing(24) },
    summary: '20% of the entries of fleet end as error.',
  },
  ShellfleetOpeningsFail: {
    series: { 'shellfleet_session_opening_seconds_count{start="failed"}': growing(11) },
    summary: '50% of the shells of fleet cannot be opened.',
  },
  ShellfleetCommandsWait: {
    series: { 'shellfleet_command_wait_seconds_bucket{outcome="success",le="30"}': growing(80) },
    summary: 'One in twenty commands of fleet waits for more than 1m 37s.',
  },
  ShellfleetSlotsTaken: {
    series: { shellfleet_slots_free: steady(0) },
    summary: '0% of the slots of fleet are free.',
  },
  ShellfleetMemoryShort: {
    series: { shellfleet_memory_free_bytes: steady(1_100) },
    summary: 'h2:9464 has little more memory than it keeps free.',
  },
  ShellfleetDiskShort: {
    series: { shellfleet_disk_free_bytes: steady(2 ** 30) },
    summary: 'h2:9464 has 1GiB of free disk.',
  },
  ShellfleetWorkerBusy: {
    series: { shellfleet_worker_busy_seconds_total: growing(0.95 * SAMPLE_SECONDS) },
    summary: 'The worker of h2:9464 has no time left.',
  },
  ShellfleetQuestionsWait: {
    series: { shellfleet_sessions_asking: steady(1) },
    summary: 'Sessions of fleet that wait for a person: 2.',
  },
};

/**
 * Returns a test for `promtool test rules`: each alert is silent for fleets without a fault, and fires for its fault
 * alone, once that has lasted. Throws if an alert has no fault here.
 */
export function writeAlertTests(rulesFile: string): string {
  const healthy = Object.entries(HEALTHY).map(([name, series]) => ({
    ...{ name, interval: `${SAMPLE_SECONDS}s`, input_series: seriesOfWorkers(series, series) },
    alert_rule_test: ['1m', '16m', '31m'].flatMap((at) => ALERTS.map((alert) => silent(alert, at))),
  }));
  const faults = ALERTS.map(testOfFault);
  return JSON.stringify({
    ...{ rule_files: [rulesFile], evaluation_interval: `${SAMPLE_SECONDS}s` },
    tests: [...healthy, ...faults],
  });
}

function testOfFault(alert: AlertPlan) {
  const { name, lasting, severity, description } = alert;
  const fault = FAULTS[name];
  if (fault === undefined) throw new Error(`infra/grafana/src/alert-cases.ts has no fault for ${name}.`);
  const lastingSeconds = Number.parseInt(lasting, 10) * (lasting.endsWith('m') ? 60 : 1);
  // A rate is too low until its window is full of samples.
  const fires = `${lastingSeconds + LONGEST_WINDOW_SECONDS + SAMPLE_SECONDS}s`;
  const isOfOneWorker = alert.value.includes('instance');
  const exp_labels = { job: 'fleet', severity, ...(isOfOneWorker && { instance: 'h2:9464' }) };
  const firing = { exp_labels, exp_annotations: { summary: fault.summary, description } };
  const busy = HEALTHY['a busy fleet'];
  const faulty = { ...busy, ...fault.series };
  return {
    ...{ name, interval: `${SAMPLE_SECONDS}s`, input_series: seriesOfWorkers(isOfOneWorker ? busy : faulty, faulty) },
    alert_rule_test: [
      silent(alert, `${Math.max(0, lastingSeconds - SAMPLE_SECONDS)}s`),
      { eval_time: fires, alertname: name, exp_alerts: [firing] },
      ...ALERTS.filter((other) => other !== alert).map((other) => silent(other, fires)),
    ],
  };
}

const silent = ({ name }: AlertPlan, at: string) => ({ eval_time: at, alertname: name, exp_alerts: [] });

/** Returns the series of the workers of h1 and h2, with the labels that Prometheus gives them. */
const seriesOfWorkers = (...workers: [Series, Series]) =>
  workers.flatMap((series, index) =>
    Object.entries(series).map(([name, values]) => {
      const [metric, labels = '}'] = name.split('{');
      const scrape = `job="fleet",instance="h${index + 1}:9464"${labels === '}' ? '' : ','}`;
      return { series: `${metric}{${scrape}${labels}`, values };
    }),
  );
