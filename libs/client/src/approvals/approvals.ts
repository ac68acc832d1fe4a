import { type Approval, type ApprovalScope, approvalIdSchema, parseOrThrow } from '@shellfleet/protocol';
import { z } from 'zod';
import { answerApproval } from './answer-approval.ts';
import type { ApprovalsContext } from './approvals-context.ts';
import { type ApprovalFilter, listApprovals } from './list-approvals.ts';
import { revokeApproval } from './revoke-approval.ts';
import { watchApprovals } from './watch-approvals.ts';

/** How a question is approved. */
export interface ApproveOptions {
  /**
   * Scope of the approval. `command`: the commands that ask now. `session`: the sessions that ask now, whenever they
   * ask the same again. `prefix`: every command of the tenant that the amendment allows, until the approval is revoked.
   * @default 'command'
   */
  scope?: ApprovalScope | undefined;
  /**
   * Name of the person who answers, as everybody sees it.
   * @default the name of the client's `caller`, else the user and the machine of this process
   * @limit 256 characters
   */
  answeredBy?: string | undefined;
}

/** How a question is denied. */
export interface DenyOptions {
  /**
   * Whether to cancel the commands that wait behind the question in its sessions.
   * @default false
   */
  abort?: boolean | undefined;
  /**
   * Name of the person who answers, as everybody sees it.
   * @default the name of the client's `caller`, else the user and the machine of this process
   * @limit 256 characters
   */
  answeredBy?: string | undefined;
}

/** The questions of this tenant for a person, and their answers. */
export class Approvals {
  readonly #context: ApprovalsContext;

  constructor(context: ApprovalsContext) {
    this.#context = context;
  }

  /**
   * Returns pending questions, the oldest first, or with `approved` the approvals that hold. Rejects with
   * COMMAND_INVALID.
   */
  list(filter: ApprovalFilter = {}): Promise<Approval[]> {
    return listApprovals(this.#context, filter);
  }

  /**
   * Yields every question that waits, then each one that is asked or changes: its `count`, and its `state` when it is
   * answered or has ended. Rejects when the signal aborts or the fleet is closed.
   *
   * ```ts
   * for await (const { id, script, state } of fleet.approvals.watch()) {
   *   if (state === 'pending' && script === 'npm test') await fleet.approvals.approve(id);
   * }
   * ```
   */
  watch(options: { signal?: AbortSignal | undefined } = {}): AsyncGenerator<Approval> {
    return watchApprovals(this.#context, options.signal);
  }

  /**
   * Approves a question. Resolves once a host has applied the answer; with no host up it resolves after 2 s, and the
   * next host applies it. Rules that forbid the command still forbid it. Rejects with APPROVAL_NOT_FOUND when the
   * question is not pending, with COMMAND_INVALID for the scope `prefix` of a question without amendment, and with
   * UNAUTHORIZED when no host accepted the answer, or the client's `caller` submitted it itself.
   */
  approve(id: string, options: ApproveOptions = {}): Promise<void> {
    return answerApproval(this.#context, { ...options, type: 'approve', id, scope: options.scope ?? 'command' });
  }

  /** Denies a question: its commands end as `denial`, with the reason. Resolves and rejects as `approve`. */
  deny(id: string, reason?: string, options: DenyOptions = {}): Promise<void> {
    return answerApproval(this.#context, { ...options, type: 'deny', id, ...(reason === undefined ? {} : { reason }) });
  }

  /**
   * Revokes an approval. Resolves when no host can start another command on it: within 100 ms, or 2 s when a host does
   * not respond. Running commands continue. Rejects with APPROVAL_NOT_FOUND when no approval of this id holds, and with
   * UNAUTHORIZED when no host accepted the revocation.
   */
  async revoke(id: string, options: { answeredBy?: string | undefined } = {}): Promise<void> {
    parseOrThrow(z.object({ id: approvalIdSchema }), { id }, 'COMMAND_INVALID', 'The approval');
    return revokeApproval(this.#context, id, options.answeredBy);
  }
}
