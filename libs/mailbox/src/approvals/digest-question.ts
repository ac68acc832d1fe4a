import { createHash } from 'node:crypto';
import { type StoredQuestion, toCanonicalJson } from '@shellfleet/protocol';

/** What a signed answer names beside the id of its question: everything that is shown of it. */
export function digestOfQuestion(question: StoredQuestion): string {
  return createHash('sha256').update(toCanonicalJson(question)).digest('hex');
}
