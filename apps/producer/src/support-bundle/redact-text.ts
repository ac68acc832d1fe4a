import { randomBytes } from 'node:crypto';
import { compileRedaction } from '@shellfleet/policy';

export const REPLACED = '[REDACTED]';
/** Credentials in a URL. */
const IN_URL = /(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@"']+@/gi;

/** Returns a function that replaces secrets in a text: known ones, tokens of known formats, credentials in URLs. */
export function createTextRedactor(secrets: Record<string, string>): (text: string) => string {
  const compiled = compileRedaction({ secrets, hashKey: randomBytes(32) });
  return (text) => compiled.text(text.replace(IN_URL, `$1${REPLACED}@`)).text;
}
