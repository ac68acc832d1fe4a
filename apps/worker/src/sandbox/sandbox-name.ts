import { createHash } from 'node:crypto';
import type { SessionRef } from './sandbox.ts';

/** Returns the name of a sandbox's directories, container and control group, distinct for long ids and in any case. */
export function sandboxName({ namespace, tenant, session }: SessionRef, sandboxId: string): string {
  const hash = createHash('sha256').update(`${namespace}\0${tenant}\0${session}`).digest('hex').slice(0, 12);
  return `${hash}-${sandboxId}`;
}
