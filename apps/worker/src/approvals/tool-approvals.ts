import { createHash } from 'node:crypto';
import { type StoredQuestion, TOOL_ASKER } from '@shellfleet/protocol';
import type { Sealer } from '@shellfleet/sealing';
import type { ApprovalQuestion } from '../admission/admission.ts';
import { approvalExpired } from './answer-texts.ts';
import { bindToolCall, type ToolCallToAdmit } from './bind-question.ts';
import type { FoundAnswer, HostApprovals } from './host-approvals.ts';

// Questions about tool calls. A call that asks has not begun. Its caller waits, as with file operations.

/** Length of the longest arguments that a person sees. Longer arguments are shown as size and digest. */
const SHOWN_CHARS = 16_384;

/** Reason why a call was not begun. */
export type ToolVerdict =
  | { type: 'asks'; question: string }
  | { type: 'deny'; code: 'denied' | 'approval-expired'; reason: string };

interface ToolApprovalsDeps {
  namespace: string;
  sealer: Sealer;
  approvals: Pick<HostApprovals, 'findFor' | 'keepWanted' | 'askFor' | 'starts'>;
}

/** Time in which an approved call must begin. It is less than START_WITHIN_MS of HOST-APPROVALS-1. */
const BEGIN_WITHIN_MS = 1_000;

export class ToolApprovals {
  readonly #deps: ToolApprovalsDeps;

  constructor(deps: ToolApprovalsDeps) {
    this.#deps = deps;
  }

  /** Calls `begin` if a person has approved this call. Otherwise denies it or asks, with `redact` applied. */
  async admit<T>(
    call: ToolCallToAdmit,
    asked: ApprovalQuestion,
    redact: (text: string) => string,
    begin: () => Promise<T>,
  ): Promise<{ begun: T } | ToolVerdict> {
    const { approvals, namespace, sealer } = this.#deps;
    const asker = { tenant: call.tenant, session: TOOL_ASKER, generation: call.name, entryId: call.id };
    const bound = bindToolCall(call, asked, namespace, sealer);
    const denied = (reason: string) => ({ type: 'deny', code: 'denied', reason: `${asked.reason} ${reason}` }) as const;
    // Ends when the call is begun or denied, or a person is asked. An answer in between leads to one of these.
    for (;;) {
      const lookedAt = performance.now();
      const found = await approvals.starts.during(asker, async (): Promise<{ begun: T } | FoundAnswer> => {
        const answer = await approvals.findFor(asker, bound, asked, () => false);
        const isInTime = performance.now() - lookedAt < BEGIN_WITHIN_MS;
        return answer.type === 'granted' && isInTime ? { begun: await begin() } : answer;
      });
      if ('begun' in found) return found;
      if (found.type === 'expired')
        return { type: 'deny', code: 'approval-expired', reason: approvalExpired().message };
      if (found.type === 'denied') return denied(found.reason);
      if (found.type === 'granted') continue;
      await approvals.keepWanted(asker);
      const added = await approvals.askFor(asker, bound, asked, describe(call, asked, redact), call.approvalTimeoutMs);
      if (added.type === 'pending') return { type: 'asks', question: added.data.id };
      if (added.type === 'refused') return denied(added.reason);
      if (added.type === 'failed') return denied(added.error.message);
    }
  }
}

function describe(
  { id, name, args, submittedBy }: ToolCallToAdmit,
  { reason }: ApprovalQuestion,
  redact: (text: string) => string,
): StoredQuestion {
  const shown = args.length > SHOWN_CHARS ? '' : ` ${redact(args)}`;
  const bytes = Buffer.byteLength(args);
  return {
    sessionId: '',
    commandId: id,
    ...(submittedBy === undefined ? {} : { submittedBy }),
    tool: name,
    script: `tool ${name}${shown}`,
    reason,
    place: 'a process of a host, without a sandbox',
    env: [],
    stdin: { bytes, sha256: createHash('sha256').update(args).digest('hex') },
  };
}
