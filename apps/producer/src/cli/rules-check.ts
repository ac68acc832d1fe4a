import { readFile } from 'node:fs/promises';
import {
  compileOperatorRules,
  type Decision,
  DocumentError,
  decide,
  type Evaluation,
  type OperatorRules,
  patternText,
  type Segment,
} from '@shellfleet/policy';
import { type ApprovalPolicy, type AskByDefault, ShellfleetError, toPrintable } from '@shellfleet/protocol';
import type { Context } from './context.ts';
import { toScript } from './script-words.ts';

export interface CheckFlags {
  file?: string[];
  approval?: Exclude<ApprovalPolicy, object>;
  askByDefault?: AskByDefault;
  escalate?: boolean;
  unsandboxed?: boolean;
  json?: boolean;
}

/** Evaluates a command without a fleet. */
export async function checkRules(context: Context, words: readonly string[], flags: CheckFlags): Promise<void> {
  const rules = await readRules(flags.file ?? []);
  if (words.length === 0) return reportFiles(context, flags, rules);
  const { segments, ...evaluation } = decide(toScript(words), {
    // Includes rules that the operator has in report-only mode.
    operator: [...rules.enforced, ...rules.reported],
    approval: flags.approval,
    askByDefault: flags.askByDefault,
    sandboxed: flags.unsandboxed !== true,
    escalate: flags.escalate === true,
  });
  if (flags.json === true) return context.terminal.json(evaluation satisfies Evaluation);
  await printDecision(context, evaluation, segments);
}

/** Reads rules. Throws COMMAND_INVALID for an unreadable file, and RULES_INVALID for an invalid one. */
export async function readRules(files: readonly string[]): Promise<OperatorRules> {
  const texts = await Promise.all(files.map(async (name) => ({ name, text: await readRulesFile(name) })));
  try {
    return compileOperatorRules(texts);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new ShellfleetError('RULES_INVALID', error.message);
  }
}

function readRulesFile(name: string): Promise<string> {
  return readFile(name, 'utf8').catch((error: Error) => {
    throw new ShellfleetError('COMMAND_INVALID', `--file ${name} cannot be read: ${error.message}`);
  });
}

async function reportFiles(
  { terminal }: Context,
  { file = [], json }: CheckFlags,
  rules: OperatorRules,
): Promise<void> {
  if (file.length === 0)
    throw new ShellfleetError('COMMAND_INVALID', 'Give a script, or --file with the rules to test, or both.');
  const count = (of: OperatorRules['enforced']) => of.reduce((sum, compiled) => sum + compiled.count, 0);
  const [enforced, reportOnly] = [count(rules.enforced), count(rules.reported)];
  if (json === true) return terminal.json({ files: file, rules: enforced, reportOnly });
  const only = reportOnly === 0 ? '' : `, and ${reportOnly} that only report`;
  await terminal.line(
    toPrintable(`${file.join(', ')}: ${enforced} ${enforced === 1 ? 'rule' : 'rules'}${only}; all examples hold.`),
  );
}

async function printDecision(
  { terminal }: Context,
  { requirement, reason, classification, bypassSandbox, amendment }: Evaluation,
  segments: readonly Segment[],
): Promise<void> {
  await terminal.line(toPrintable(`${VERDICTS[requirement]}${reason === undefined ? '' : ` ${reason}`}`));
  await terminal.line(`It is ${CLASSES[classification]}.`);
  if (bypassSandbox) await terminal.line('It may run outside the sandbox if it asks for that: rules allow all of it.');
  if (amendment !== undefined)
    await terminal.line(toPrintable(`The rule \`${patternText(amendment)}\` would allow it.`));
  if (segments.length === 0) return;
  await terminal.line('');
  await terminal.table([
    ['COMMAND', 'IS', 'BY THE RULES'],
    ...segments.map(({ words, row, matchedRules }) => [words.join(' '), row, matchedRules.map(patternText).join(', ')]),
  ]);
}

const VERDICTS: Record<Decision['requirement'], string> = {
  skip: 'It runs without a question.',
  'needs-approval': 'A person is asked.',
  forbidden: 'It is denied.',
};
const CLASSES: Record<Decision['classification'], string> = {
  safe: 'known to be safe',
  dangerous: 'dangerous',
  unknown: 'not known to be safe or dangerous',
};
