import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { readConfig } from '../config.ts';
import { openHost } from './open-policies.ts';

// A program of its own, for `doctor`: whether a worker that is started like this could offer the host policy, found out by starting a
// shell. One line of JSON; it leaves nothing behind.

const folder = await mkdtemp(join(tmpdir(), 'sf-'));
try {
  const config = readConfig();
  const folders = { hostId: 'doctor', hostKey: randomBytes(32), sandboxes: join(folder, 's'), hostSandboxes: folder };
  const sandboxes = await openHost(config, folders);
  await sandboxes.check().finally(() => sandboxes.close());
  say({ offered: true, detail: sandboxes.description, sharesUid: config.hostUser.sharedUid });
} catch (error) {
  say({ offered: false, detail: ensureShellfleetError(error).message });
} finally {
  await rm(folder, { recursive: true, force: true });
}

function say(words: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(words)}\n`);
}
