import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import type { Kubectl } from '../stage/kubectl.ts';
import { whilePrintingPods } from './pod-states.ts';

const run = promisify(execFile);
const WITHIN = '10m';

export interface ChartInstaller {
  helm: string;
  kubeconfig: string;
  kubectl: Kubectl;
  /** Directory for files of values. */
  directory: string;
  /** Values of the chart that name the images, as YAML. */
  images: string;
}

/** Makes a namespace that admits only Pods of the standard `restricted`. */
export async function makeNamespace(kubectl: Kubectl): Promise<void> {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: kubectl.namespace, labels } };
  await kubectl.run(['create', '--filename=-'], JSON.stringify(namespace));
}

/** Installs the chart as the release `shellfleet`, or changes it. Throws with what helm printed. */
export async function installChart(
  { helm, kubeconfig, kubectl, directory, images }: ChartInstaller,
  unenforced: readonly string[],
): Promise<void> {
  const own = join(directory, 'values.json');
  const ofImages = join(directory, 'images.yaml');
  await writeFile(own, JSON.stringify(toValues(unenforced)));
  await writeFile(ofImages, images);
  const chart = join(checkoutRoot, 'infra/helm/shellfleet');
  const where = ['--kubeconfig', kubeconfig, '--namespace', kubectl.namespace];
  const values = ['--values', own, '--values', ofImages];
  const args = ['upgrade', '--install', 'shellfleet', chart, ...values, '--wait', '--timeout', WITHIN, ...where];
  console.log(`Installing the chart, within ${WITHIN}`);
  const installing = run(helm, args).catch((error: Error & { stderr?: string }) => {
    throw new Error(`helm upgrade --install: ${error.stderr?.trim() || error.message}`);
  });
  await whilePrintingPods(kubectl, installing);
}

export async function uninstallChart({ helm, kubeconfig, kubectl }: ChartInstaller): Promise<void> {
  const where = ['--kubeconfig', kubeconfig, '--namespace', kubectl.namespace];
  await run(helm, ['uninstall', 'shellfleet', '--wait', '--timeout', WITHIN, ...where]);
}

/** Returns values with which the chart fits a small cluster: one node with two processors and no storage class. */
function toValues(unenforced: readonly string[]) {
  return {
    workers: {
      replicas: 2,
      resources: {
        requests: { cpu: '100m', memory: '256Mi', 'ephemeral-storage': '256Mi' },
        limits: { memory: '1Gi', 'ephemeral-storage': '4Gi' },
      },
    },
    sessions: {
      unenforced,
      // Nodes of a trial have little disk.
      workspace: { sizeBytes: 2 ** 30 },
      ephemeralStorageBytes: 2 ** 30,
    },
    redis: {
      embedded: {
        ...{ enabled: true, persistence: false, storage: '1Gi' },
        resources: { requests: { cpu: '50m', memory: '128Mi' }, limits: { memory: '512Mi' } },
      },
    },
  };
}
