import { setTimeout as delay } from 'node:timers/promises';
import type { Adopted } from '@shellfleet/mailbox';
import { isShellfleetError } from '@shellfleet/protocol';
import { removeSandbox } from '../sandbox/remove-sandbox.ts';
import type { FoundSandbox, Sandbox, Sandboxes } from '../sandbox/sandbox.ts';
import type { SessionParts } from './session-parts.ts';

const FIND_AGAIN_MS = 500;
/** Time for which a worker without the key of the sandbox keeps the session from the others. */
const PUT_BACK_AFTER_MS = 2_000;

/**
 * Finds the living sandbox of the session's last ready shell, which another worker may have created. Undefined when it
 * is gone. While it cannot be known, asks again, until this host has lost the session or leaves it. Leaves it when
 * only another worker can have the key of the sandbox.
 */
export async function findShell(
  { shell: before }: Pick<Adopted, 'shell'>,
  { context, hosting }: SessionParts,
  sandboxes: Pick<Sandboxes, 'find'>,
): Promise<Sandbox | undefined> {
  if (before === undefined) return undefined;
  const { namespace, tenant, session } = context.owner.keys;
  for (let failures = 0; !hosting.lost.aborted; failures += 1) {
    try {
      const found = await sandboxes.find?.({ namespace, tenant, session }, before.sandbox);
      return await takeLiving(found, context);
    } catch (err) {
      if (failures === 0) context.logger.warn({ err }, 'session.shell-unknown');
      if (isShellfleetError(err) && err.code === 'SEAL_KEY_UNKNOWN') {
        await delay(PUT_BACK_AFTER_MS, undefined, { signal: hosting.lost }).catch(() => {});
        hosting.become('moving');
        return undefined;
      }
    }
    if (hosting.state === 'handing-over') hosting.become('moving');
    await delay(FIND_AGAIN_MS, undefined, { signal: hosting.lost }).catch(() => {});
  }
  return undefined;
}

/** Returns a sandbox that runs. Removes one that has ended. */
async function takeLiving(
  found: FoundSandbox | undefined,
  { logger }: SessionParts['context'],
): Promise<Sandbox | undefined> {
  if (found === undefined || found.state === 'spare') return undefined;
  if (found.state === 'running') return found.sandbox;
  await removeSandbox(found.sandbox, logger);
  return undefined;
}
