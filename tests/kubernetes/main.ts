import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { runStep, type Step } from '../../scripts/steps.ts';
import { clusterPrograms } from '../../scripts/testing/chart-tools.ts';
import { checkUninstall } from './run/check-uninstall.ts';
import { saveEvidence } from './run/evidence.ts';
import { checkArchitectures, readFacts } from './run/facts.ts';
import { findUnenforced } from './run/find-unenforced.ts';
import { type ChartInstaller, installChart, makeNamespace } from './run/install-chart.ts';
import { type KubernetesPlan, readPlan } from './run/plan.ts';
import { prepareImages } from './run/prepare-images.ts';
import { drawTable, type Row, toRows } from './run/table.ts';
import type { Installation } from './stage/cluster-stage.ts';
import { Kubectl } from './stage/kubectl.ts';

// `npm run test:kubernetes [-- --registry PREFIX | --images DIR] [--keep]`: installs the chart into the cluster of
// KUBECONFIG, runs the tests of this directory against it, and ends with one table. The exit code is 1 when a test
// failed.

async function main({ kubeconfig, keep, ...from }: KubernetesPlan, cleanup: AsyncDisposableStack): Promise<number> {
  const { helm, kubectl: program } = await clusterPrograms(process.env);
  const kubectl = new Kubectl(program, kubeconfig, `shellfleet-test-${randomBytes(3).toString('hex')}`);
  for (const fact of await readFacts(kubectl)) console.log(fact);
  console.log('Preparing the images');
  const images = await prepareImages(from);
  for (const warning of await checkArchitectures(kubectl, images)) console.log(warning);
  const directory = await mkdtemp(join(tmpdir(), 'sf-kubernetes-'));
  cleanup.defer(() => rm(directory, { recursive: true, force: true }));
  const installer: ChartInstaller = { helm, kubeconfig, kubectl, directory, images };
  await makeNamespace(kubectl);
  const remove = `kubectl delete namespace ${kubectl.namespace}`;
  console.log(`namespace ${kubectl.namespace}; ${keep ? 'it stays' : 'deleted at the end'}, or by: ${remove}`);
  if (!keep)
    cleanup.defer(async () => {
      console.log(remove);
      await kubectl.run(['delete', 'namespace', kubectl.namespace, '--wait=false']);
    });
  const rows = await testChart(installer, { kubectl: program, keep }).catch(async (error: Error) => {
    await saveEvidence(kubectl, error.message);
    throw error;
  });
  console.log(drawTable(rows));
  return rows.some(isFailed) ? 1 : 0;
}

async function testChart(
  installer: ChartInstaller,
  { kubectl: program, keep }: { kubectl: string; keep: boolean },
): Promise<Row[]> {
  const { kubectl, kubeconfig } = installer;
  await installChart(installer, []);
  const installation: Installation = { kubectl: program, kubeconfig, namespace: kubectl.namespace, impossible: {} };
  installation.impossible = await findUnenforced(installation, (names) => installChart(installer, names));
  for (const [name, why] of Object.entries(installation.impossible)) console.log(`${name} is not enforced: ${why}`);
  const rows = await runTests(installation, installer.directory);
  await saveFailures(kubectl, rows);
  if (keep) return rows;
  console.log('Uninstalling the chart');
  const last = await checkUninstall(installer, installation);
  await saveFailures(kubectl, [last]);
  return [...rows, last];
}

async function saveFailures(kubectl: Kubectl, rows: readonly Row[]): Promise<void> {
  const failed = rows.filter(isFailed);
  if (failed.length > 0) await saveEvidence(kubectl, drawTable(failed));
}

const isFailed = ({ result }: Row) => result === 'failed';

async function runTests(installation: Installation, directory: string): Promise<Row[]> {
  const path = join(directory, 'installation.json');
  await writeFile(path, JSON.stringify(installation), { mode: 0o600 });
  const report = join(checkoutRoot, '.cache/kubernetes.json');
  await mkdir(join(checkoutRoot, '.cache'), { recursive: true });
  await rm(report, { force: true });
  const reporters = ['--reporter=verbose', '--reporter=json', `--outputFile.json=${report}`];
  const command: Step = ['node_modules/.bin/vitest', 'run', '--config=tests/kubernetes/vitest.config.ts', ...reporters];
  process.env.SHELLFLEET_KUBERNETES_INSTALLATION = path;
  await runStep(command, checkoutRoot);
  const written = await readFile(report, 'utf8').catch(() => undefined);
  if (written === undefined) return [{ result: 'failed', name: 'the tests', why: 'vitest ended without a report' }];
  return toRows(JSON.parse(written));
}

await using cleanup = new AsyncDisposableStack();
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, async () => {
    // Programs that this one has started get the signal of a terminal as well, so all else fails by itself.
    await cleanup.disposeAsync().catch((error: Error) => console.error(error.message));
    process.exit(130);
  });
try {
  process.exitCode = await main(readPlan(process.argv.slice(2), process.env), cleanup);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
