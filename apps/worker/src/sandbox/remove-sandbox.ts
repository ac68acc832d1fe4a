import { ATTRIBUTES } from '@shellfleet/protocol';
import type { LogFields, Logger } from '../log/logger.ts';
import type { UnassignedSandbox } from './sandbox.ts';

/** Removes a sandbox. A failure is logged, because the next sweep removes the rest. Never rejects. */
export async function removeSandbox(sandbox: UnassignedSandbox, logger: Logger): Promise<void> {
  await sandbox
    .remove()
    .catch((err: unknown) => logger.warn({ err, ...sandboxFields(sandbox) }, 'sandbox.remove-failed'));
}

/** Returns the fields of a log that name a sandbox. */
export function sandboxFields({ containerId, description }: UnassignedSandbox): LogFields {
  return containerId === undefined ? { sandbox: description } : { [ATTRIBUTES.containerId]: containerId };
}
