import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { readConfig, type WorkerConfig } from '../config/config.ts';
import { examineCluster } from './kubernetes/examine-cluster.ts';
import { openBubblewrapHost, openCodexHost, openHost } from './open-policies.ts';

// Program for `doctor`: starts a shell under the policy (one without containers) that its argument names, to test
// whether a worker could offer it. Under `kubernetes` it only asks the API server. Prints one line of JSON and removes
// everything that it created.

const OPENERS = { host: openHost, bubblewrap: openBubblewrapHost, codex: openCodexHost };

const directory = await mkdtemp(join(tmpdir(), 'sf-'));
try {
  const config = readConfig();
  if (process.argv[2] === 'kubernetes') print({ offered: true, detail: await examineKubernetes(config) });
  else await examineOnHost(config);
} catch (error) {
  print({ offered: false, detail: ensureShellfleetError(error).message });
} finally {
  await rm(directory, { recursive: true, force: true });
}

function examineKubernetes({ kubernetes }: WorkerConfig): Promise<string> {
  if (kubernetes === undefined) throw new Error('SHELLFLEET_CONFIG has no section kubernetes');
  return examineCluster(kubernetes.api, kubernetes.namespace);
}

async function examineOnHost(config: WorkerConfig): Promise<void> {
  const open = OPENERS[process.argv[2] as keyof typeof OPENERS];
  const hostKey = randomBytes(32);
  const inDirectory = (name: string) => join(directory, name);
  const sandboxes = await open(config, {
    hostId: 'doctor',
    hostKey,
    sandboxes: inDirectory('s'),
    imageRecord: inDirectory('images.json'),
    hostSandboxes: inDirectory('h'),
    bubblewrapSandboxes: inDirectory('b'),
    codexSandboxes: inDirectory('c'),
  });
  await sandboxes.check().finally(() => sandboxes.close());
  print({ offered: true, detail: sandboxes.description, sharesUid: config.hostUser.sharedUid });
}

function print(report: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
