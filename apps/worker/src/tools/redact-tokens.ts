import { compileRedaction } from '@shellfleet/policy';

/** Replaces tokens of well-known formats in a text: what a tool gives back, prints or throws may hold one by accident. */
export function createTokenRedactor(): (text: string) => string {
  // Nothing is hashed, so the key is of no use.
  const redaction = compileRedaction({ tokens: true, hashKey: new Uint8Array(32) });
  return (text) => redaction.text(text).text;
}
