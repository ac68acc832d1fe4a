import { type FileOperation, type SessionKeys, ShellfleetError } from '@shellfleet/protocol';
import type { Admission } from './admission.ts';

/**
 * ADMIT-1 for a file operation beside the mailbox. Throws FILE_DENIED unless the host's rules admit it: outside of the mailbox nothing can be
 * held until somebody answers.
 */
export async function admitFile(
  entryId: string,
  operation: FileOperation,
  admission: Admission,
  { tenant, session }: SessionKeys,
): Promise<void> {
  if (admission.digest === '') return;
  const verdict = await admission.judge({ tenant, session, entryId, payload: { type: 'file', operation } });
  if (verdict.type === 'admit') return;
  const how = verdict.type === 'hold' ? 'needs an approval; ask for it with { ordered: true }' : 'is denied';
  throw new ShellfleetError('FILE_DENIED', `The ${operation.name} of ${operation.path} ${how}: ${verdict.reason}`, {
    path: operation.path,
    operation: operation.name,
  });
}
