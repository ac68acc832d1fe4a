import { createHash } from 'node:crypto';
import { compileRules } from '../exec/compile-rules.ts';
import type { CompiledRules } from '../exec/compiled-rules.ts';
import { parseRulesDocument } from './rules-document.ts';

export interface OperatorRules {
  enforced: readonly CompiledRules[];
  /** Rules of the files with `reportOnly`. */
  reported: readonly CompiledRules[];
  /** Digest of all files; empty when no file has a rule. */
  digest: string;
}

export interface RulesFile {
  /** Path of the file, for messages. */
  name: string;
  text: string;
}

/** Compiles the files. Throws DocumentError, or RULES_INVALID with the file, the rule and the example. */
export function compileOperatorRules(files: readonly RulesFile[]): OperatorRules {
  const documents = files.map(({ name, text }) => ({ ...parseRulesDocument(text, name), source: name }));
  for (const { source, hostExecutables } of documents) compileRules([], { source, hostExecutables });
  // The host's own file may list the paths of programs that the file of the fleet names.
  const hostExecutables = documents.flatMap((document) => document.hostExecutables);
  const compiled = documents.map(({ rules, reportOnly, source }) => ({
    reportOnly,
    rules: compileRules(rules, { source, hostExecutables }),
  }));
  const ofKind = (kind: boolean) =>
    compiled.filter(({ reportOnly, rules }) => reportOnly === kind && rules.count > 0).map(({ rules }) => rules);
  const hasRules = compiled.some(({ rules }) => rules.count > 0);
  const contents = JSON.stringify(files.map(({ text }) => text));
  return {
    enforced: ofKind(false),
    reported: ofKind(true),
    digest: hasRules ? createHash('sha256').update(contents).digest('base64url') : '',
  };
}
