import { lstat } from 'node:fs/promises';
import { WORKSPACE_PATH } from '@shellfleet/policy';
import type { PolicyName } from '@shellfleet/protocol';
import { isAlive, type LiveProcess } from './live-process.ts';
import { unavailable } from './unavailable.ts';

/**
 * SANDBOX-4: compares what two sandboxes have mounted, so it does not matter what the path leads to by now. `one`, `other`: their processes. No
 * session can change the root folder of its sandbox. Throws SANDBOX_UNAVAILABLE.
 */
export async function checkSameWorkspace(
  one: LiveProcess | undefined,
  other: LiveProcess,
  policy: PolicyName,
): Promise<void> {
  const [own, beside] = await Promise.all([one === undefined ? undefined : identityOf(one), identityOf(other)]);
  if (own === undefined || own !== beside)
    throw unavailable(
      policy,
      'the workspace of the session was replaced while the session has it, or its sandbox is gone',
    );
}

/** Undefined when the process has ended. */
async function identityOf(process_: LiveProcess): Promise<string | undefined> {
  const folder = await lstat(`/proc/${process_.pid}/root${WORKSPACE_PATH}`, { bigint: true }).catch(() => undefined);
  // The number was the process's own all the time, so what was read is of it.
  if (!(await isAlive(process_))) return undefined;
  return folder?.isDirectory() ? `${folder.dev}:${folder.ino}` : undefined;
}
