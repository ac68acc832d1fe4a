import type { Entry } from '@shellfleet/mailbox';
import type { SessionShell } from '../shell/session-shell.ts';
import type { ShellHello } from '../shell/shell.ts';

/** Returns whether the keeper that sent `hello` has begun the entry, and still has it. */
export async function hasBegun(
  { id, kind }: Pick<Entry, 'id' | 'kind'>,
  hello: ShellHello,
  shell: Pick<SessionShell, 'live'>,
): Promise<boolean> {
  if (kind !== 'file') return hello.entryId === id;
  return (await shell.live?.files.hasBegun(id)) ?? false;
}
