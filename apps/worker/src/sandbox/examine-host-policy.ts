import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { readConfig } from '../config/config.ts';
import { openHost } from './open-policies.ts';

// A program for `doctor`: starts a shell under the host policy to find out whether a worker with this environment could offer the policy.
// Prints one line of JSON and removes everything that it created.

const folder = await mkdtemp(join(tmpdir(), 'sf-'));
try {
  const config = readConfig();
  const folders = { hostId: 'doctor', hostKey: randomBytes(32), sandboxes: join(folder, 's'), hostSandboxes: folder };
  const sandboxes = await openHost(config, folders);
  await sandboxes.check().finally(() => sandboxes.close());
  print({ offered: true, detail: sandboxes.description, sharesUid: config.hostUser.sharedUid });
} catch (error) {
  print({ offered: false, detail: ensureShellfleetError(error).message });
} finally {
  await rm(folder, { recursive: true, force: true });
}

function print(report: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
