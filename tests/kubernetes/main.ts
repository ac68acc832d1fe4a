import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import { runStep, type Step } from '../../scripts/steps.ts';
import { chartTools } from '../../scripts/testing/chart-tools.ts';
import { readFacts } from './run/facts.ts';
import { findUnenforced } from './run/find-unenforced.ts';
import { type ChartInstaller, installChart, makeNamespace, uninstallChart } from './run/install-chart.ts';
import { type KubernetesPlan, readPlan } from './run/plan.ts';
import { prepareImages } from './run/prepare-images.ts';
import { drawTable, type Row, toRows } from './run/table.ts';
import type { Installation } from './stage/cluster-stage.ts';
import { Kubectl } from './stage/kubectl.ts';
import { listSessionPods } from './stage/pods.ts';

// `npm run test:kubernetes [-- --registry PREFIX | --images DIR] [--keep]`: installs the chart into the cluster of
// KUBECONFIG, runs the tests of this directory against it, and ends with one table. The exit code is 1 when a test
// failed.

async function main({ kubeconfig, keep, ...from }: KubernetesPlan, cleanup: AsyncDisposableStack): Promise<number> {
  const { helm, kubectl: program } = await chartTools();
  const kubectl = new Kubectl(program, kubeconfig, `shellfleet-test-${randomBytes(3).toString('hex')}`);
  for (const fact of await readFacts(kubectl)) console.log(fact);
  const images = await prepareImages(from);
  const directory = await mkdtemp(join(tmpdir(), 'sf-kubernetes-'));
  cleanup.defer(() => rm(directory, { recursive: true, force: true }));
  const installer: ChartInstaller = { helm, kubeconfig, kubectl, directory, images };
  console.log(`namespace ${kubectl.namespace}`);
  await makeNamespace(kubectl);
  if (!keep)
    cleanup.defer(async () => void (await kubectl.run(['delete', 'namespace', kubectl.namespace, '--wait=false'])));
  await installChart(installer, []);
  const installation: Installation = { kubectl: program, kubeconfig, namespace: kubectl.namespace, impossible: {} };
  installation.impossible = await findUnenforced(installation, (names) => installChart(installer, names));
  for (const [name, why] of Object.entries(installation.impossible)) console.log(`${name} is not enforced: ${why}`);
  const rows = await runTests(installation, directory);
  if (!keep) rows.push(await checkUninstall(installer));
  console.log(drawTable(rows));
  return rows.some(({ result }) => result === 'failed') ? 1 : 0;
}

async function runTests(installation: Installation, directory: string): Promise<Row[]> {
  const path = join(directory, 'installation.json');
  await writeFile(path, JSON.stringify(installation), { mode: 0o600 });
  const report = join(checkoutRoot, '.cache/kubernetes.json');
  await mkdir(join(checkoutRoot, '.cache'), { recursive: true });
  await rm(report, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const command: Step = ['node_modules/.bin/vitest', 'run', '--config=tests/kubernetes/vitest.config.ts', ...reporters];
  process.env.SHELLFLEET_KUBERNETES_INSTALLATION = path;
  await runStep(command, checkoutRoot);
  return toRows(JSON.parse(await readFile(report, 'utf8')));
}

/** Uninstalls the chart while a session is open. No Pod of a session may stay. */
async function checkUninstall(installer: ChartInstaller): Promise<Row> {
  const name = 'helm uninstall leaves no Pod of a session';
  try {
    await uninstallChart(installer);
    // The garbage collector of the cluster deletes them behind the command.
    await installer.kubectl.run([
      ...['wait', '--for=delete', 'pod', '--selector=app.kubernetes.io/managed-by=shellfleet', '--timeout=120s'],
    ]);
    const left = await listSessionPods(installer.kubectl);
    if (left.length === 0) return { result: 'passed', name };
    return { result: 'failed', name, why: left.map(({ metadata }) => metadata.name).join(', ') };
  } catch (error) {
    return { result: 'failed', name, why: (error as Error).message };
  }
}

await using cleanup = new AsyncDisposableStack();
try {
  process.exitCode = await main(readPlan(process.argv.slice(2), process.env), cleanup);
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}
