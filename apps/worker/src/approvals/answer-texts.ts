import { ShellfleetError } from '@shellfleet/protocol';

type Denial = { answeredBy?: string | undefined; reason?: string | undefined };

export function describeDenial({ answeredBy, reason }: Denial): string {
  return `${answeredBy ?? 'an approver'} denied it${reason ? `: ${reason}` : ''}`;
}

export function approvalExpired(): ShellfleetError {
  return new ShellfleetError(
    'APPROVAL_EXPIRED',
    'Nobody answered its question in time (approvalTimeoutMs), so nothing was run. Submit it again when somebody can answer.',
  );
}

export function tooManyPending(tenant: string, pending: number): ShellfleetError {
  return new ShellfleetError(
    'QUOTA_EXCEEDED',
    `${pending} questions of tenant ${tenant} wait for an answer, which is the most (approvals.pendingPerTenant), so this one was not asked and nothing was run. Answer some of them first.`,
    { tenant, pending },
  );
}
