import { type PrefixRule, prefixRuleSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { parseDocument } from './parse-document.ts';

/** A file of rules that an operator lists. If rules of several such files match, the strictest wins. */
export interface RulesDocument {
  rules: PrefixRule[];
  /** Paths of programs. Once `git` is listed, a rule for `git` holds for `/usr/bin/git` only if that path is listed. */
  hostExecutables: { name: string; paths: string[] }[];
  /** Whether the rulings of these rules are only recorded. Then the rules refuse nothing and ask nobody. */
  reportOnly: boolean;
}

const hostExecutableSchema = z.strictObject(
  {
    name: z.string('must be a string').regex(/^[^\s/]+$/, 'must be the name of a program, without a directory'),
    paths: z
      .array(z.string('must be a string').startsWith('/', 'must be an absolute path'), 'must be a list of paths')
      .max(64, 'must hold at most 64 paths'),
  },
  'must be { name, paths }',
);

const rulesDocumentSchema = z.strictObject(
  {
    rules: z.array(prefixRuleSchema, 'must be a list of rules').max(4_096, 'must hold at most 4096 rules').default([]),
    hostExecutables: z.array(hostExecutableSchema, 'must be a list of { name, paths }').default([]),
    reportOnly: z.boolean('must be true or false').default(false),
  },
  'must have only these fields: rules, hostExecutables, reportOnly',
);

/**
 * Parses the text of the file `name`. Throws DocumentError. The examples of its rules are checked later, by
 * compileRules.
 */
export function parseRulesDocument(text: string, name: string): RulesDocument {
  return parseDocument(text, rulesDocumentSchema, name);
}

/** Section `rules:` of a configuration file, which lists the files of rules to read. */
export const rulesSectionSchema = z
  .array(z.string('must be a string').startsWith('/', 'must be an absolute path'), 'must be a list of files')
  .max(64, 'must hold at most 64 files');
