import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ChartTools } from '../../../../scripts/testing/chart-tools.ts';

export const chartDirectory = fileURLToPath(new URL('../../shellfleet', import.meta.url));

/** Namespaces and name of every release that these tests render. */
export const RELEASE = 'trial';
export const NAMESPACE = 'workers-here';

/** Home of helm, which keeps there what it knows of a cluster, and creates it. */
const HOME = join(tmpdir(), 'shellfleet-helm-home');

/** Object that the chart makes. */
export interface ChartObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  // biome-ignore lint/suspicious/noExplicitAny: objects of many kinds, which the models validate.
  [field: string]: any;
}

interface YamlModule {
  parseAllDocuments(text: string): { toJS(): unknown }[];
}

export interface RenderOptions {
  chart?: string;
  /** Further arguments of `helm template`. */
  args?: readonly string[];
}

/** Returns the objects that `helm template` makes of the values. Rejects with the message of helm. */
export async function renderChart(
  { helm, load }: ChartTools,
  values: object,
  { chart = chartDirectory, args = [] }: RenderOptions = {},
): Promise<ChartObject[]> {
  const text = await runHelm(helm, ['template', RELEASE, chart, '-n', NAMESPACE, '-f', '-', ...args], values);
  return parseObjects(load, text);
}

/** Returns the objects of a YAML text. */
export async function parseObjects(load: ChartTools['load'], text: string): Promise<ChartObject[]> {
  const { parseAllDocuments } = await load<YamlModule>('yaml');
  return parseAllDocuments(text)
    .map((document) => document.toJS() as ChartObject | null)
    .filter((object) => object !== null);
}

/** Runs helm with values on its stdin. Returns its stdout; rejects with its stderr when it fails. */
export function runHelm(helm: string, args: readonly string[], values: object): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(helm, args, { env: { PATH: process.env.PATH, HOME } });
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', reject);
    child.on('close', (exitCode) => (exitCode === 0 ? resolve(stdout) : reject(new Error(stderr || stdout))));
    child.stdin.end(JSON.stringify(values));
  });
}
