import type { ApprovalPolicy, AskByDefault, PrefixRule, SandboxOptions } from '@shellfleet/protocol';
import { compileRules } from './compile-rules.ts';
import { type Decision, decide } from './decide.ts';

export interface EvaluationContext {
  /** Rules of an operator. */
  execPolicy?: PrefixRule[] | undefined;
  /** Commands about which a person is asked. Default: only the commands of `prompt` rules. */
  approval?: ApprovalPolicy | undefined;
  /** Commands about which a person is asked where no rule decides, if `approval` allows it. Default: 'unreadable'. */
  askByDefault?: AskByDefault | undefined;
  /** The sandbox in which the command would run. Default: a sandbox without options. */
  sandbox?: SandboxOptions | undefined;
  escalate?: boolean | undefined;
}

export type Evaluation = Omit<Decision, 'segments'>;

/** Decides about a script as a host with these rules would. Throws RULES_INVALID. */
export function evaluate(
  script: string,
  { execPolicy = [], approval, askByDefault, sandbox, escalate = false }: EvaluationContext,
): Evaluation {
  const { segments: _, ...evaluation } = decide(script, {
    operator: [compileRules(execPolicy, { source: 'execPolicy' })],
    approval,
    askByDefault,
    sandboxed: isSandboxed(sandbox),
    escalate,
    mustStay: sandbox?.selection === 'require',
  });
  return evaluation;
}

function isSandboxed({ mode, selection }: SandboxOptions = {}): boolean {
  if (selection === 'forbid') return false;
  return selection === 'require' || (mode !== 'danger-full-access' && mode !== 'external');
}
