import type { ApprovalPolicy } from '@shellfleet/protocol';

export interface RequirementWithoutRule {
  requirement: 'skip' | 'needs-approval' | 'forbidden';
  reason?: string;
}

export const REJECTED_PROMPT = 'approval policy rejected sandbox approval prompt';

/**
 * Decides about a command about which no rule and no list decides. `wouldAsk`: the command would run in a sandbox whose
 * mode asks.
 */
export function requirementWithoutRule(
  approval: ApprovalPolicy | undefined,
  wouldAsk: boolean,
): RequirementWithoutRule {
  if (approval === undefined || approval === 'never' || approval === 'on-failure') return { requirement: 'skip' };
  if (!wouldAsk && approval !== 'unless-trusted') return { requirement: 'skip' };
  if (typeof approval === 'object' && approval.reject.sandboxApproval)
    return { requirement: 'forbidden', reason: REJECTED_PROMPT };
  return { requirement: 'needs-approval' };
}
