import { readFile, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isShellfleetError, sessionSpecSchema, tryJson } from '@shellfleet/protocol';
import { z } from 'zod';
import type { WorkerConfig } from '../../config/config.ts';
import type { Logger } from '../../log/logger.ts';
import { openDocker, type SandboxDirectories } from '../../sandbox/open-policies.ts';
import type { Sandboxes, SandboxTransport } from '../../sandbox/sandbox.ts';
import { connectShell } from '../connect-shell.ts';

// The socket is faster, but needs containers on the worker's own kernel: those of Docker Desktop cannot connect to a
// socket in a shared directory. So a container tries the socket, then attach. The state directory keeps the result.

/** Time for a keeper to connect. It normally needs milliseconds, and seconds under load. */
const CONNECT_WITHIN_MS = 10_000;
/** Time to create the container. A missing image is not waited for; the next start tries again. */
const CREATE_WITHIN_MS = 10_000;
const PROBE_SESSION = 'transport-probe';
/** A name that the removal of old session directories skips. */
const MEMORY_FILE = '.transport.json';

const memorySchema = z.object({ engine: z.string(), transport: z.enum(['socket', 'attach']) });

/** Returns the operator's transport, or the first of socket and attach that works with the engine. */
export async function chooseTransport(
  config: WorkerConfig,
  directories: SandboxDirectories,
  logger: Logger,
): Promise<SandboxTransport> {
  if (config.transport !== 'auto') return config.transport;
  if (!config.policies.includes('docker')) return 'socket';
  const engine = await realpath(config.dockerSocketPath).catch(() => config.dockerSocketPath);
  const path = join(directories.sandboxes, MEMORY_FILE);
  const memory = memorySchema.safeParse(tryJson(await readFile(path, 'utf8').catch(() => ''))).data;
  if (memory?.engine === engine) return memory.transport;
  const works = await firstThatWorks(config, directories, logger);
  if (works === undefined) return 'socket'; // sessions report the reason
  await writeFile(path, JSON.stringify({ engine, transport: works }));
  return works;
}

/** Returns the transport that works. Undefined if neither connects, or if no container can be created. */
async function firstThatWorks(
  config: WorkerConfig,
  directories: SandboxDirectories,
  logger: Logger,
): Promise<SandboxTransport | undefined> {
  for (const transport of ['socket', 'attach'] as const) {
    try {
      await tryOut(await openDocker({ ...config, transport }, directories, logger), config.namespace);
      return transport;
    } catch (error) {
      if (!isShellfleetError(error) || error.code === 'IMAGE_UNAVAILABLE') return undefined;
    }
  }
  return undefined;
}

async function tryOut(sandboxes: Sandboxes, namespace: string): Promise<void> {
  try {
    const session = { namespace, tenant: 'default', session: PROBE_SESSION };
    const signal = AbortSignal.timeout(CREATE_WITHIN_MS);
    const sandbox = await sandboxes.create(session, sessionSpecSchema.parse({}), { signal });
    try {
      const options = { fence: 1, deadlineMs: CONNECT_WITHIN_MS, start: true, onMessage: () => {} };
      (await connectShell(sandbox, options)).disconnect();
    } finally {
      await sandbox.remove();
    }
  } finally {
    await sandboxes.close();
  }
}
