import { recordWritten } from '@shellfleet/mailbox';
import { approvalKeys, type FileOperation, onlyReads } from '@shellfleet/protocol';
import { sealPlace } from '@shellfleet/sealing';
import type { SessionAdmission } from '../admission/admission.ts';
import type { SessionContext } from '../run/session-context.ts';

/** Lists a written file in the question of the held head, before the write: the command may read it. */
export async function listWritten(
  operation: FileOperation,
  admission: SessionAdmission,
  { mailbox, generation, redaction, sealer }: SessionContext,
): Promise<void> {
  if (admission.digest === '' || onlyReads(operation) || (operation.name === 'write' && !operation.last)) return;
  const { redis, keys } = mailbox.owner;
  await mailbox.retry(async (once) => {
    const head = await once.peek();
    if (head === undefined || head.runnable) return;
    const tenant = approvalKeys(keys.namespace, keys.tenant);
    const asker = { session: keys.session, generation, entryId: head.entry.id };
    const path = redaction.text(operation.name === 'rename' ? operation.to : operation.path);
    await recordWritten(redis, tenant, asker, (id) =>
      sealer.seal(JSON.stringify(path), sealPlace('approval-question', tenant, { question: id })),
    );
  });
}
