import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { readConfig } from '../config/config.ts';
import { openBubblewrapHost, openCodexHost, openHost } from './open-policies.ts';

// Program for `doctor`: starts a shell under the policy (one without containers) that its argument names, to test
// whether a worker could offer it. Prints one line of JSON and removes everything that it created.

const OPENERS = { host: openHost, bubblewrap: openBubblewrapHost, codex: openCodexHost };

const directory = await mkdtemp(join(tmpdir(), 'sf-'));
try {
  const open = OPENERS[process.argv[2] as keyof typeof OPENERS];
  const config = readConfig();
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
} catch (error) {
  print({ offered: false, detail: ensureShellfleetError(error).message });
} finally {
  await rm(directory, { recursive: true, force: true });
}

function print(report: Record<string, unknown>): void {
  process.stdout.write(`${JSON.stringify(report)}\n`);
}
