import type { Approval, PrefixRule } from '@shellfleet/protocol';
import { quoteWord, toPrintable } from '@shellfleet/protocol';

/**
 * Describes a question for the person who answers it: script, place, reason, and what the widest answer would allow.
 * Texts of the caller are printable and marked. `widest` is the flag or key with which the person gives that answer.
 */
export function describeQuestion(approval: Approval, widest = '--for prefix'): string[] {
  const { id, sessionId, commandId, tool, script, reason, place, outside, env, stdin, content, expiresAt } = approval;
  const { submittedBy, justification, firstAttempt, amendment, covers, count, filesWritten = [] } = approval;
  const others = count > 1 ? ` and ${count - 1} other ${count === 2 ? 'session' : 'sessions'}` : '';
  const rows: (readonly [string, string])[] = [
    ['question', `${id}, until ${expiresAt}`],
    ...(tool === undefined
      ? ([
          ['session', `${sessionId}${others}`],
          ['command', commandId],
        ] as const)
      : ([
          ['tool', tool],
          ['call', `${commandId}${others}`],
        ] as const)),
    ...(submittedBy === undefined ? [] : [['asks', submittedBy.name] as const]),
    ['where', `${outside ? 'OUTSIDE its sandbox: ' : ''}${place}${inDirectory(approval)}`],
    ...(env.length === 0 ? [] : [['brings', `the variables ${env.join(', ')}`] as const]),
    ...(stdin === undefined
      ? []
      : [[tool === undefined ? 'stdin' : 'arguments', `${stdin.bytes} bytes, SHA-256 ${stdin.sha256}`] as const]),
    ...(content === undefined ? [] : [['writes', describeContent(content)] as const]),
    ...filesWritten.map((path) => ['changed since it was asked', path] as const),
    ['because', reason],
    ...(justification === undefined ? [] : [['the caller says (not verified)', justification] as const]),
  ];
  return [
    ...rows.map(([name, text]) => `${name.padEnd(9)} ${toPrintable(text)}`),
    'script',
    ...quote(script),
    ...(firstAttempt === undefined ? [] : describeFirstAttempt(firstAttempt)),
    ...(covers === undefined
      ? []
      : [`The scope session would allow in its session from then on: ${describePattern(covers)}`]),
    ...(amendment === undefined ? [] : [`${widest} would allow from then on: ${describePattern(amendment)}`]),
  ];
}

function describeContent({ files, bytes, sha256 }: NonNullable<Approval['content']>): string {
  return `${files === 1 ? '' : `${files} files, `}${bytes} bytes, SHA-256 ${sha256}${files === 1 ? '' : ' of their list'}`;
}

function inDirectory({ cwd, cwdUnknown }: Approval): string {
  if (cwd !== undefined) return `, in ${cwd}`;
  return cwdUnknown === undefined ? '' : `, in a directory that is not known: ${cwdUnknown}`;
}

function describeFirstAttempt({ exitCode, output }: NonNullable<Approval['firstAttempt']>): string[] {
  return [
    `its first attempt, inside the sandbox, ended with exit code ${exitCode ?? 'none'} and printed`,
    ...quote(output),
  ];
}

function quote(text: string): string[] {
  return text.split('\n').map((line) => `  | ${toPrintable(line)}`);
}

/** Describes a pattern in one line, with alternatives in brackets: `git [fetch|pull] …`. */
export function describePattern({ pattern }: Pick<PrefixRule, 'pattern'>): string {
  const words = pattern.map((element) =>
    typeof element === 'string' ? quoteWord(element) : `[${element.map(quoteWord).join('|')}]`,
  );
  return toPrintable(`${words.join(' ')} …`);
}
