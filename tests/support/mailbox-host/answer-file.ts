import { sendAnswer, storeAnswer } from '@shellfleet/mailbox';
import { type AskCall, fileOperationSchema, type SealedAnswer, type SessionKeys } from '@shellfleet/protocol';
import { type Sealer, sealPlace } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import { type MemoryFiles, runFileInMemory } from './memory-files.ts';

/** Answers a question about a file operation beside the mailbox. Other questions stay without an answer. */
export async function answerFile(
  call: AskCall,
  session: MemoryFiles & { epoch: number },
  { redis, keys, sealer }: { redis: Redis; keys: SessionKeys; sealer: Sealer },
): Promise<void> {
  const { question, id, inbox } = call;
  if (question.type !== 'file') return;
  const plain = sealer.open(question.sealed, sealPlace('file', keys, question));
  const { result, answer = {} } = runFileInMemory(session, fileOperationSchema.parse(JSON.parse(plain)));
  const told: SealedAnswer =
    result.outcome === 'error'
      ? { type: 'refusal', error: result.error }
      : { type: 'answer', value: { state: 'done', epoch: session.epoch, answer } };
  await storeAnswer(redis, keys, id, sealer.seal(JSON.stringify(told), sealPlace('answer', keys, id)));
  await sendAnswer(redis, keys.namespace, inbox, { id, sealed: '' });
}
