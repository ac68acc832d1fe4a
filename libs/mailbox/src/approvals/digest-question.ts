import { createHash } from 'node:crypto';
import { type StoredQuestion, toCanonicalJson } from '@shellfleet/protocol';

/** Returns a digest of everything that is shown of a question. A signed answer has it beside the id of the question. */
export function digestOfQuestion(question: StoredQuestion): string {
  return createHash('sha256').update(toCanonicalJson(question)).digest('hex');
}
