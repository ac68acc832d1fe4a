import { type PrefixRule, prefixRuleSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { parseDocument } from './parse-document.ts';

/**
 * A file of rules that the operator of a host lists. Its rules
 * hold together with those of the other files: the strictest wins.
 */
export interface RulesDocument {
  rules: PrefixRule[];
  /**
   * Where programs of these names are: a rule for `git` holds for `/usr/bin/git` only if that is listed, once `git` is.
   */
  hostExecutables: { name: string; paths: string[] }[];
  /** What its rules say is recorded, and nothing is refused or asked because of them. */
  reportOnly: boolean;
}

const hostExecutableSchema = z.strictObject(
  {
    name: z.string('must be a string').regex(/^[^\s/]+$/, 'must be the name of a program, without a folder'),
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

/** Throws DocumentError. `name`: of the file. The examples of its rules are not checked here (compileRules). */
export function parseRulesDocument(text: string, name: string): RulesDocument {
  return parseDocument(text, rulesDocumentSchema, name);
}

/** `rules:` in a configuration file: the files to read. */
export const rulesSectionSchema = z
  .array(z.string('must be a string').startsWith('/', 'must be an absolute path'), 'must be a list of files')
  .max(64, 'must hold at most 64 files');
