import { createHmac } from 'node:crypto';
import type { Rule } from './source.ts';

/** Returns the text that replaces `found` in the output. */
export function replacementOf(rule: Rule, found: Uint8Array, hashKey: Uint8Array): Buffer {
  if (rule.strategy === 'mask') return Buffer.from(maskOf(rule.type, Buffer.from(found).toString('utf8')));
  if (rule.strategy === 'hash') return Buffer.from(`<${rule.type}_hash:${shortHash(found, hashKey)}>`);
  return redacted(rule);
}

/** Returns a replacement that shows no part of the finding. */
export function redacted(rule: Rule): Buffer {
  let replacement = REDACTED.get(rule);
  if (replacement === undefined) {
    replacement = Buffer.from(`[REDACTED_${rule.type.toUpperCase()}]`);
    REDACTED.set(rule, replacement);
  }
  return replacement;
}

const REDACTED = new WeakMap<Rule, Buffer>();

/** Returns a keyed hash. Without a key, a card number could be found by hashing every possible number. */
function shortHash(found: Uint8Array, hashKey: Uint8Array): string {
  return createHmac('sha256', hashKey).update(found).digest('hex').slice(0, 8);
}

function maskOf(type: string, text: string): string {
  // A rule may be called `constructor`, which every object has.
  const mask = Object.hasOwn(MASKS, type) ? MASKS[type]?.(text) : undefined;
  if (mask !== undefined) return mask;
  const characters = [...text];
  return characters.length <= 4 ? '****' : `****${characters.slice(-4).join('')}`;
}

/** Masks that show enough to distinguish two values. A mask returns undefined for a text of another shape. */
const MASKS: Record<string, ((text: string) => string | undefined) | undefined> = {
  email(text) {
    const at = text.lastIndexOf('@');
    const dot = text.lastIndexOf('.');
    return at > 0 && dot > at ? `${text.slice(0, at)}@****${text.slice(dot)}` : undefined;
  },
  credit_card(text) {
    const digits = text.replace(/[^0-9]/g, '');
    if (digits.length <= 4) return undefined;
    const separator = /[ -]/.exec(text)?.[0];
    return separator === undefined
      ? '*'.repeat(12) + digits.slice(-4)
      : ['****', '****', '****', digits.slice(-4)].join(separator);
  },
  ip(text) {
    const lastOctet = `*.*.*.${text.slice(text.lastIndexOf('.') + 1)}`;
    if (/^[0-9.]+$/.test(text)) return lastOctet;
    const lastGroup = text.includes('.') ? lastOctet : text.slice(text.lastIndexOf(':') + 1);
    return text.includes(':') ? `*:*:*:*:*:*:*:${lastGroup}` : undefined;
  },
  mac_address(text) {
    const separator = text[2];
    return separator === ':' || separator === '-' ? `${`**${separator}`.repeat(5)}${text.slice(-2)}` : undefined;
  },
  url: () => '[MASKED_URL]',
};
