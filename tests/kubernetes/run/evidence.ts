import { appendFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { checkoutRoot } from '@shellfleet/setup';
import type { Kubectl } from '../stage/kubectl.ts';

const LOGS = ['logs', '--all-containers', '--prefix', '--tail=500', '--selector=app.kubernetes.io/instance=shellfleet'];
const COMMANDS = [
  ['get', 'nodes', '--output=wide'],
  ['describe', 'nodes'],
  ['get', 'pods,deployments,statefulsets,persistentvolumeclaims,quota,networkpolicies', '--output=wide'],
  ['get', 'events', '--sort-by=.lastTimestamp'],
  ['describe', 'pods'],
  LOGS,
  [...LOGS, '--previous'],
];

/**
 * Writes what a cluster tells about a failure into a file, before the namespace is deleted, and prints its path.
 * The file has no Secrets.
 */
export async function saveEvidence(kubectl: Kubectl, failure: string): Promise<void> {
  const path = join(checkoutRoot, '.cache', `${kubectl.namespace}.txt`);
  await mkdir(dirname(path), { recursive: true });
  await appendFile(path, `${new Date().toISOString()} ${failure}\n`);
  for (const args of COMMANDS) {
    const said = await kubectl.run([...args, '--request-timeout=30s']).catch((error: Error) => error.message);
    await appendFile(path, `\n$ kubectl ${args.join(' ')}\n${said}\n`);
  }
  console.log(`Pods, events and logs of the failure are in ${path}`);
}
