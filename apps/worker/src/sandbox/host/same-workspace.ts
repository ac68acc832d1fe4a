import { lstat } from 'node:fs/promises';
import { WORKSPACE_PATH } from '@shellfleet/policy';
import type { PolicyName } from '@shellfleet/protocol';
import { isAlive, type LiveProcess } from './live-process.ts';
import { unavailable } from './unavailable.ts';

/**
 * Throws SANDBOX_UNAVAILABLE unless two processes have the same directory mounted as workspace (SANDBOX-4). No session
 * can change the root of its sandbox, but the path may lead elsewhere by now.
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

/** Returns device and inode of the process's workspace, or undefined when it has ended or has none. */
async function identityOf(process_: LiveProcess): Promise<string | undefined> {
  const directory = await lstat(`/proc/${process_.pid}/root${WORKSPACE_PATH}`, { bigint: true }).catch(() => undefined);
  // The pid was not reused meanwhile, so the result belongs to this process.
  if (!(await isAlive(process_))) return undefined;
  return directory?.isDirectory() ? `${directory.dev}:${directory.ino}` : undefined;
}
