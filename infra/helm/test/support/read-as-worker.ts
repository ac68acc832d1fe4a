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
const READ = `const { readConfig } = await import(process.argv[1]);
const read = (env) => { try { return readConfig(env).kubernetes } catch (error) { return error.message } };
console.log(JSON.stringify(JSON.parse(process.argv[2]).map(read)));`;

/** Returns what a worker reads of the section `kubernetes` for each release, or why it does not start. */
export async function readAsWorker(releases: readonly ChartObject[][]): Promise<unknown[]> {
  const directory = await mkdtemp(join(tmpdir(), 'sf-chart-'));
  try {
    const envs = await Promise.all(releases.map((objects, index) => toEnv(objects, join(directory, `${index}.yaml`))));
    const args = ['--conditions=@shellfleet/source', '--no-warnings', '--input-type=module', '-e', READ];
    const config = join(checkout, 'apps/worker/src/config/config.ts');
    const { stdout } = await promisify(execFile)(process.execPath, [...args, config, JSON.stringify(envs)], {
      cwd: checkout,
    });
    return JSON.parse(stdout);
  } finally {
    await rm(directory, { recursive: true });
  }
}

async function toEnv(objects: readonly ChartObject[], path: string): Promise<Record<string, string>> {
  const find = (kind: string) => objects.find((one) => one.kind === kind && one.metadata.name.endsWith('-worker'));
  await writeFile(path, find('ConfigMap')?.data['shellfleet.yaml']);
  const env = find('Deployment')?.spec.template.spec.containers[0].env as { name: string; value?: string }[];
  return {
    ...FROM_ELSEWHERE,
    ...Object.fromEntries(env.map(({ name, value }) => [name, value ?? FROM_ELSEWHERE[name] ?? ''])),
    SHELLFLEET_CONFIG: path,
  };
}
