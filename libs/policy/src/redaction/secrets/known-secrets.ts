import { type Anchor, AnchorScan } from '../anchor-scan.ts';
import type { Rule, Source } from '../source.ts';
import { SECRET_ANCHOR_BITS } from '../spots.ts';
import { isShort, needlesOf, SHORTEST_SECRET_CHARS } from './needles.ts';

export interface RedactionWarning {
  /** The name of the secret. No message contains its value. */
  secret: string;
  message: string;
}

const TOO_SHORT = `is shorter than ${SHORTEST_SECRET_CHARS} characters, and is not masked`;

/** Returns a warning for each secret that is too short to be found in output. */
export function unmaskedSecrets(secrets: Record<string, string>): RedactionWarning[] {
  return Object.keys(secrets)
    .filter((name) => isShort(secrets[name] ?? ''))
    .map((secret) => ({ secret, message: TOO_SHORT }));
}

/**
 * Returns sources that find the session's secrets in all forms that docs/output.md lists, and a warning for each secret
 * that is too short.
 */
export function knownSecrets(
  secrets: Record<string, string>,
  rule: Rule,
): { sources: Source[]; warnings: RedactionWarning[] } {
  const anchors: Anchor[] = [];
  const warnings: RedactionWarning[] = [];
  for (const [name, value] of Object.entries(secrets)) {
    const needles = needlesOf(value, rule);
    if (needles === undefined) {
      warnings.push({ secret: name, message: TOO_SHORT });
    } else for (const needle of needles) anchors.push(needle);
  }
  return { sources: anchors.length > 0 ? [new AnchorScan(anchors, SECRET_ANCHOR_BITS)] : [], warnings };
}
