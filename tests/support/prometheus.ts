import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { freePort } from './redis-process.ts';
import { until } from './until.ts';

/** Debian's Prometheus on loopback, which scrapes every second. */
export interface Prometheus extends AsyncDisposable {
  /** Returns the series of an expression over the last minute, each with its values. Throws if it is not valid. */
  query(expression: string): Promise<Series[]>;
  /** Returns the health of each rule and target, and the last error of those that are not well. */
  problems(): Promise<string[]>;
}

interface Series {
  labels: Record<string, string>;
  values: number[];
}

const answerSchema = z.object({
  status: z.string(),
  error: z.string().optional(),
  data: z
    .object({
      result: z
        .array(
          z.object({ metric: z.record(z.string(), z.string()), values: z.array(z.tuple([z.number(), z.string()])) }),
        )
        .default([]),
    })
    .optional(),
});
const healthSchema = z.object({ health: z.string(), lastError: z.string().default('') });
const targetsSchema = z.object({ data: z.object({ activeTargets: z.array(healthSchema) }) });
const rulesSchema = z.object({ data: z.object({ groups: z.array(z.object({ rules: z.array(healthSchema) })) }) });

/** Starts a Prometheus with the rules of a file that scrapes these `host:port`s as the job `fleet`. */
export async function startPrometheus(targets: readonly string[], rules: string): Promise<Prometheus> {
  const directory = await mkdtemp(join(tmpdir(), 'sf-prometheus-'));
  const address = `127.0.0.1:${await freePort()}`;
  const config = {
    global: { scrape_interval: '1s', scrape_timeout: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    scrape_configs: [{ job_name: 'fleet', static_configs: [{ targets }] }],
  };
  // JSON is valid YAML.
  await writeFile(join(directory, 'prometheus.yml'), JSON.stringify(config));
  const flags = [
    `--config.file=${directory}/prometheus.yml`,
    `--storage.tsdb.path=${directory}/data`,
    `--web.listen-address=${address}`,
    '--log.level=error',
  ];
  const child = spawn('prometheus', flags, { stdio: ['ignore', 'ignore', 'inherit'] });
  const ended = once(child, 'exit');
  const failed = ended.then(() => Promise.reject(new Error('Prometheus ended; the lines above say why.')));
  failed.catch(() => {});
  const ask = async (path: string) => (await fetch(`http://${address}${path}`)).json();
  const isReady = () =>
    fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await Promise.race([until(isReady, Boolean), failed]);
  return {
    async query(expression) {
      const end = Date.now() / 1_000;
      const asked = new URLSearchParams({ query: expression, start: String(end - 60), end: String(end), step: '1' });
      const { status, error, data } = answerSchema.parse(await ask(`/api/v1/query_range?${asked}`));
      if (status !== 'success') throw new Error(`${expression}: ${error}`);
      return (data?.result ?? []).map(({ metric, values }) => ({
        labels: metric,
        values: values.map(([, value]) => Number(value)),
      }));
    },
    async problems() {
      const { data } = targetsSchema.parse(await ask('/api/v1/targets'));
      const rules = rulesSchema.parse(await ask('/api/v1/rules')).data.groups.flatMap((group) => group.rules);
      const unwell = [...data.activeTargets, ...rules].filter(({ health }) => health !== 'up' && health !== 'ok');
      return unwell.map(({ health, lastError }) => `${health}: ${lastError}`);
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await ended;
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Runs `promtool` with an input. Returns its exit code and what it printed. */
export async function runPromtool(args: readonly string[], input = ''): Promise<{ code: number | null; text: string }> {
  const child = execFile('promtool', args);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += chunk));
  child.stdin?.end(input);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, text };
}
