import { createHash } from 'node:crypto';
import type { SessionRef } from './sandbox.ts';

/** Names a sandbox's folders, container and control group: ids that differ only in case, or are long, stay apart. */
export function sandboxName({ namespace, tenant, session }: SessionRef, sandboxId: string): string {
  const hash = createHash('sha256').update(`${namespace}\0${tenant}\0${session}`).digest('hex').slice(0, 12);
  return `${hash}-${sandboxId}`;
}
