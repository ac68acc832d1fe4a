import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { ChartObject } from './render-chart.ts';

const checkout = fileURLToPath(new URL('../../../..', import.meta.url));
/** Values of the variables that come from elsewhere than the Deployment. */
const FROM_ELSEWHERE: Record<string, string> = {
  KUBERNETES_SERVICE_HOST: '10.1.0.1',
  SHELLFLEET_HOST_ID: 'trial-shellfleet-worker-5d8f-x7k2p',
  SHELLFLEET_REDIS_URL: 'redis://redis.example',
  SHELLFLEET_SCALE_TOKEN: 'a'.repeat(40),
  SHELLFLEET_SEAL_KEY: Buffer.alloc(32).toString('base64'),
};
const READ = `const [module, name, envs] = process.argv.slice(1);
const { [name]: readConfig } = await import(module);
const read = (env) => { try { return readConfig(env) } catch (error) { return error.message } };
console.log(JSON.stringify(JSON.parse(envs).map(read)));`;

/** Returns what the workers of each release read of their configuration, or why they do not start. */
export function readAsWorker(releases: readonly ChartObject[][]): Promise<Read[]> {
  return read('config.ts', 'readConfig', releases, '-worker');
}

/** Returns what the egress proxy of each release reads of its configuration, or why it does not start. */
export function readAsProxy(releases: readonly ChartObject[][]): Promise<Read[]> {
  return read('egress-config.ts', 'readEgressConfig', releases, '-egress');
}

type Read = string | Record<string, unknown>;

/** Runs a function of the worker's sources, which are no dependency of these tests, in a process of its own. */
async function read(
  file: string,
  name: string,
  releases: readonly ChartObject[][],
  component: string,
): Promise<Read[]> {
  const directory = await mkdtemp(join(tmpdir(), 'sf-chart-'));
  try {
    const paths = releases.map((_, index) => join(directory, `${index}.yaml`));
    const envs = await Promise.all(releases.map((objects, index) => toEnv(objects, component, paths[index] as string)));
    const args = ['--conditions=@shellfleet/source', '--no-warnings', '--input-type=module', '-e', READ];
    const module = join(checkout, 'apps/worker/src/config', file);
    const { stdout } = await promisify(execFile)(process.execPath, [...args, module, name, JSON.stringify(envs)], {
      cwd: checkout,
    });
    return JSON.parse(stdout);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function toEnv(
  objects: readonly ChartObject[],
  component: string,
  path: string,
): Promise<Record<string, string>> {
  const configuration = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name.endsWith('-worker'));
  await writeFile(path, configuration?.data['shellfleet.yaml']);
  const deployment = objects.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name.endsWith(component));
  const env = deployment?.spec.template.spec.containers[0].env as { name: string; value?: string }[];
  return {
    ...FROM_ELSEWHERE,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value ?? FROM_ELSEWHERE[name] ?? ''])),
    SHELLFLEET_CONFIG: path,
  };
}
