import { type FieldIssue, type RedactionRule, ShellfleetError } from '@shellfleet/protocol';
import { type RedactionBlock, type Redactor, StreamRedactor } from './redactor.ts';
import { knownSecrets, type RedactionWarning } from './secrets/known-secrets.ts';
import type { Rule, Source } from './source.ts';

export interface RedactionOptions {
  rules?: readonly RedactionRule[];
  /** Name → value. They are found in every encoding, whatever the rules. */
  secrets?: Record<string, string>;
  /** Of the tenant: equal values of one tenant have equal hashes, and nobody else can compute them. */
  hashKey: Uint8Array;
  /** Whether tokens of well-known formats are found. */
  tokens?: boolean;
  /** Milliseconds, monotonic: the budget of time of custom patterns. Without a clock there is none. */
  now?: () => number;
}

/** What a session's rules and secrets mean, made once and used for each of its streams and texts. */
export interface Redaction {
  /** One for each stream of a command. `before`: the last bytes that were released, to go on behind them. */
  redactor(options?: { before?: Uint8Array }): Redactor;
  /** A whole text: an error, the echo of a command, the name of a file, a line of a log. */
  text(text: string): RedactedText;
  readonly warnings: readonly RedactionWarning[];
}

export interface RedactedText {
  text: string;
  counts: Readonly<Record<string, number>>;
  blocked: RedactionBlock | undefined;
}

/** Throws SESSION_SPEC_INVALID with every rule that can never work. */
export function compileRedaction(options: RedactionOptions): Redaction {
  const sources: Source[] = [];
  const secret: Rule = { type: 'secret', strategy: 'redact', rank: 0 };
  const known = knownSecrets(options.secrets ?? {}, secret);
  if (known.source) sources.push(known.source);
  const issues: FieldIssue[] = (options.rules ?? []).map(({ type }, index) => ({
    path: `redaction.${index}.type`,
    message: `${type} is not known`,
  }));
  if (issues.length > 0) throw refusal(issues);
  const create = (before?: Uint8Array): Redactor =>
    new StreamRedactor({ sources, hashKey: options.hashKey, readsLeftOfAnything: false, before });
  return {
    redactor: ({ before } = {}) => create(before),
    text(text) {
      const redactor = create();
      const redacted = Buffer.concat([redactor.push(Buffer.from(text)), redactor.end()]).toString();
      return { text: redacted, counts: redactor.counts, blocked: redactor.blocked };
    },
    warnings: known.warnings,
  };
}

/** For a caller with rules alone: tokens are found as well, and hashes cannot be compared with another redactor's. */
export function createRedactor(rules: readonly RedactionRule[]): Redactor {
  return compileRedaction({ rules, hashKey: crypto.getRandomValues(new Uint8Array(32)) }).redactor();
}

function refusal(issues: FieldIssue[]): ShellfleetError {
  const list = issues.map(({ path, message }) => `${path}: ${message}`).join('; ');
  return new ShellfleetError('SESSION_SPEC_INVALID', `The redaction rules are not valid: ${list}`, { issues });
}
