import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Session } from '@shellfleet/client';
import { ALERTS, ALERTS_FILE, ROWS, writeAlertTests } from '@shellfleet/grafana';
import { METRICS, quoteWord } from '@shellfleet/protocol';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Prometheus, runPromtool, startPrometheus } from '../support/prometheus.ts';
import { freePort } from '../support/redis-process.ts';
import { startFleet, type TestFleet } from '../support/start-fleet.ts';
import { toolModules } from '../support/tool-modules.ts';
import { until, untilFound } from '../support/until.ts';

// Two busy workers, watched by a real Prometheus with the committed rules.

const SLOTS = 5;
const TOKEN = 'token-of-the-autoscaler';
const RULES = `rules:
  - { pattern: [rm], decision: forbid, justification: nothing is removed here }
`;

let directory: string;
let ports: number[];
let stack: TestFleet;
let prometheus: Prometheus;
const stopping = new AbortController();
let working: Promise<unknown>;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-metrics-'));
  await writeFile(join(directory, 'rules.yaml'), RULES);
  // JSON is valid YAML.
  const config = {
    rules: [join(directory, 'rules.yaml')],
    pools: [{ min: 1, max: 1 }],
    allow: { networks: ['restricted', 'limited'], hosts: ['*.example'] },
  };
  await writeFile(join(directory, 'config.yaml'), JSON.stringify(config));
  ports = [await freePort(), await freePort()];
  stack = await startFleet({
    workers: ports.length,
    slots: SLOTS,
    env: {
      SHELLFLEET_CONFIG: join(directory, 'config.yaml'),
      SHELLFLEET_TOOLS: toolModules('everyday'),
      SHELLFLEET_SCALE_TOKEN: TOKEN,
      SHELLFLEET_LOG_SINK: `file://${join(directory, 'workers.log')}`,
    },
    envs: ports.map((port) => ({ SHELLFLEET_METRICS_PORT: String(port) })),
  });
  prometheus = await startPrometheus(
    ports.map((port) => `127.0.0.1:${port}`),
    ALERTS_FILE,
  );
  // What is under way ends with the fleet.
  working = keepBusy().catch(() => {});
}, 60_000);
afterAll(async () => {
  stopping.abort();
  await prometheus?.[Symbol.asyncDispose]();
  await stack?.[Symbol.asyncDispose]();
  await working;
  await rm(directory, { recursive: true, force: true });
});

/** Asks the proxy of the session for a host that it refuses. */
const LEAVE = [
  'exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}',
  String.raw`printf 'CONNECT other.example:443 HTTP/1.1\r\n\r\n' >&3`,
  'head -n 1 <&3',
].join('; ');

/** Lets the fleet do a little of everything, again and again, while sessions wait for the quota of their tenant. */
async function keepBusy(): Promise<void> {
  const { fleet } = stack;
  await fleet.applyConfiguration({ tenants: [{ name: 'bounded', maxSessions: 1 }] });
  const asks = await fleet.session('asks', { approval: 'unless-trusted' });
  await asks.run('true');
  await asks.submit('touch asked');
  const denied = await fleet.session('denied', { approval: 'unless-trusted' });
  const held = await denied.submit('touch denied');
  const [question] = await until(
    () => pendingOf('touch denied'),
    ({ length }) => length === 1,
  );
  await fleet.approvals.deny(question?.id ?? '');
  // A close would cancel it first.
  await held.result();
  await denied.close();
  const busy = await Promise.all(
    ['one', 'two', 'three'].map((id) => fleet.session(id, { secrets: { TOKEN: 'planted-secret' } })),
  );
  const limited = await fleet.session('limited', { sandbox: { network: 'limited', allowedHosts: ['an.example'] } });
  await limited.submit(`bash -c ${quoteWord(LEAVE)}`);
  const bounded = await stack.connect({ tenant: 'bounded' });
  await Promise.all(
    Array.from({ length: 4 }, async (_, n) => (await bounded.session(`waits-${n}`)).submit('sleep 600')),
  );
  await Promise.all(busy.map(workIn));
}

const pendingOf = async (script: string) =>
  (await stack.fleet.approvals.list()).filter((question) => question.script === script);

async function workIn(session: Session, index: number): Promise<void> {
  while (!stopping.signal.aborted) {
    await session.run('echo $TOKEN; echo problem >&2');
    await session.run('true', { cwd: '/no/such/directory' });
    await session.run('rm -r x');
    await session.files.write('/workspace/file', 'text');
    await stack.fleet.tools.call('add', { a: 1, b: index });
    const once = await stack.fleet.session(`once-${index}`);
    await once.run('true');
    await once.close();
    await delay(100);
  }
}

const read = async (path: string, headers = {}, worker = 0) => {
  const response = await fetch(`http://127.0.0.1:${ports[worker]}${path}`, { headers });
  return { status: response.status, text: await response.text() };
};

const hasData = async (expression: string) =>
  (await prometheus.query(expression)).some(({ values }) => values.some(Number.isFinite));

/** Returns the expressions for which Prometheus has no data. */
async function withoutData(expressions: readonly string[]): Promise<string[]> {
  const found = await Promise.all(expressions.map(hasData));
  return expressions.filter((_, index) => !found[index]);
}

describe('a real Prometheus', () => {
  test('has data for every expression of the dashboard and of the alerts', async () => {
    const ofPanels = ROWS.flatMap(({ panels }) => panels.flatMap(({ queries }) => queries.map(({ expr }) => expr)));
    const expressions = [
      ...ofPanels.map((expr) => expr.replaceAll('$__rate_interval', '30s').replaceAll('$job', '.*')),
      ...ALERTS.map(({ value }) => value),
    ];
    expect(expressions.length).toBeGreaterThan(60);
    await until(
      () => withoutData(expressions),
      (missing) => missing.length === 0,
      45_000,
    );
    expect(await prometheus.problems()).toEqual([]);
  }, 60_000);

  test('sees counts of what happened, and the same demand at both workers', async () => {
    const last = async (expression: string) =>
      (await prometheus.query(expression)).map(({ values }) => values.at(-1) ?? Number.NaN);
    for (const name of ['redactions_total', 'errors_total', 'output_bytes_total', 'questions_total'])
      expect(await last(`sum(shellfleet_${name})`), name).toEqual([expect.toSatisfy((count: number) => count > 0)]);
    for (const series of [
      'denials_total{by="rules"}',
      'denials_total{by="approver"}',
      'egress_requests_total{verdict="refused"}',
    ])
      await untilFound(series, async () => ((await last(`sum(shellfleet_${series})`))[0] ?? 0) > 0);
    expect(await last('sum(shellfleet_sessions_asking)')).toEqual([1]);
    expect(await last('sum(shellfleet_slots)')).toEqual([2 * SLOTS]);
    expect(await last('max by (job) (shellfleet_hosts{state="up"})')).toEqual([2]);
  });
});

describe('the metrics', () => {
  test('are those of docs/telemetry.md, and promtool finds nothing wrong with them', async () => {
    const texts = await Promise.all(ports.map((_, worker) => read('/metrics', {}, worker)));
    const text = texts.map((one) => one.text).join('');
    const sampled = new Set(text.split('\n').flatMap((line) => /^shellfleet_\w+/.exec(line) ?? []));
    const names = Object.keys(METRICS).filter((name) => !sampled.has(name) && !sampled.has(`${name}_count`));
    expect(names).toEqual([]);
    expect(await runPromtool(['check', 'metrics'], texts[0]?.text)).toEqual({ code: 0, text: '' });
  });

  test('are read on loopback only', async () => {
    const others = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ internal, family }) => !internal && family === 'IPv4');
    for (const { address } of others)
      await expect(fetch(`http://${address}:${ports[0]}/healthz`)).rejects.toThrow('fetch failed');
  });
});

describe('the alert rules', () => {
  test('are valid for promtool', async () => {
    expect(await runPromtool(['check', 'rules', ALERTS_FILE])).toMatchObject({
      code: 0,
      text: expect.stringContaining(`${ALERTS.length} rules found`),
    });
  });

  test('are silent for fleets without a fault, and fire for the fault that they name', async () => {
    const tests = join(directory, 'alert-tests.yaml');
    await writeFile(tests, writeAlertTests(ALERTS_FILE));
    expect(await runPromtool(['test', 'rules', tests])).toEqual({ code: 0, text: expect.stringContaining('SUCCESS') });
  });
});

describe('a worker with a port for metrics', () => {
  test('is ready, and is not while it is cordoned', async () => {
    expect(await read('/healthz')).toEqual({ status: 200, text: 'alive\n' });
    expect(await read('/readyz')).toEqual({ status: 200, text: 'ready\n' });
    await stack.fleet.cordonHost('h1');
    const refused = await until(
      () => read('/readyz'),
      ({ status }) => status === 503,
    );
    expect(refused.text).toContain('An operator has cordoned it.');
    expect((await read('/healthz')).status).toBe(200);
    await stack.fleet.uncordonHost('h1');
    await until(
      () => read('/readyz'),
      ({ status }) => status === 200,
    );
  });

  test('gives the demand of the fleet to bearers of the token, and never logs it', async () => {
    expect((await read('/scale')).status).toBe(401);
    const headers = { authorization: `Bearer ${TOKEN}` };
    const scales = await Promise.all(ports.map((_, worker) => read('/scale', headers, worker)));
    for (const { status, text } of scales) {
      const { demand, held, waiting, hosts } = JSON.parse(text);
      expect({ status, hosts, sum: held + waiting }).toEqual({
        status: 200,
        hosts: { up: 2, draining: 0, unreachable: 0 },
        sum: demand,
      });
      expect(waiting).toBeGreaterThan(0);
    }
    expect(stack.workers.map(({ log }) => log.includes(TOKEN))).toEqual([false, false]);
  });
});
