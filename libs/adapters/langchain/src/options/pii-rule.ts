import type { RedactionRule as SessionRedactionRule } from '@shellfleet/client';
import { ShellfleetError } from '@shellfleet/protocol';
import type { RedactionRuleConfig } from 'langchain';

/** A rule that replaces or blocks text in the output. It has the fields of LangChain's RedactionRuleConfig. */
export class PiiRule {
  /** Kind of text: one that is built in, or a name of your own with a `detector`. */
  readonly piiType: RedactionRuleConfig['piiType'];
  /** What happens to the text that is found. */
  readonly strategy: RedactionRuleConfig['strategy'];
  /** Pattern that finds the text. Default: the detector of the kind. */
  readonly detector?: RegExp | string;

  constructor({
    piiType,
    strategy = 'redact',
    detector,
  }: Pick<PiiRule, 'piiType'> & Partial<Pick<PiiRule, 'strategy' | 'detector'>>) {
    this.piiType = piiType;
    this.strategy = strategy;
    if (detector !== undefined) this.detector = detector;
  }
}

/** Converts a rule of LangChain into one of a session's spec. Throws SESSION_SPEC_INVALID for a detector in code. */
export function toSessionRule({ piiType, strategy, detector }: RedactionRuleConfig): SessionRedactionRule {
  if (typeof detector === 'function') {
    const message = `The detector of ${piiType} is a function. Give a pattern: output is redacted on the host, before this process receives it.`;
    throw new ShellfleetError('SESSION_SPEC_INVALID', message, {
      issues: [{ path: 'redactionRules', message: 'has a detector that is a function' }],
    });
  }
  const pattern = detector instanceof RegExp ? toPattern(detector) : detector;
  return { type: piiType, strategy, ...(pattern === undefined ? {} : { pattern }) };
}

/** Returns the pattern in the syntax of RE2, where flags are part of the pattern. */
function toPattern({ source, flags }: RegExp): string {
  const kept = flags.replaceAll(/[^ims]/g, '');
  return kept === '' ? source : `(?${kept})${source}`;
}
