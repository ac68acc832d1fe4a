export {
  type ClaimedAnnouncement,
  claimAnnouncement,
  forgetAnnouncement,
  putOffAnnouncement,
} from './approvals/announce.ts';
export {
  type AppliedAnswer,
  applyAnswer,
  confirmAnswer,
  dropAnswer,
  isAnswerWaiting,
  readAnswers,
  readConfirmed,
  wakeForAnswers,
  writeAnswer,
} from './approvals/answers.ts';
export { type Asked, type Asker, askApproval, type NewQuestion, parseAsker, toAsker } from './approvals/ask.ts';
export { forgetQuietTenants, keepAsking, readAskingTenants } from './approvals/asking-tenants.ts';
export { type Decided, forgetDecided, readDecided } from './approvals/decided.ts';
export {
  expireQuestions,
  readAskers,
  withdrawAskers,
  withdrawEnded,
  withdrawEndedOf,
} from './approvals/end-asking.ts';
export { findAnswer, type StoredAnswer } from './approvals/find.ts';
export { digestOfQuestion, openGrant, openPending, openQuestion } from './approvals/open-question.ts';
export {
  isGranted,
  type PendingQuestion,
  readApprovalEnd,
  readAskersOf,
  readGrants,
  readQuestion,
  readQuestions,
} from './approvals/read.ts';
export { isAsking, keepWanted, readAsked, stillAsks } from './approvals/still-asks.ts';
export { recordWritten } from './approvals/written-files.ts';
export type { BatchAccess, BatchLease, Retry } from './batches/access.ts';
export {
  appendResults,
  BATCH_LEASE_MS,
  type BatchEnd,
  endBatch,
  RENEW_BATCH_EVERY_MS,
  releaseBatch,
  renewBatch,
  runOutputsTooLarge,
  storeManifest,
  storeOutputs,
} from './batches/drive-batch.ts';
export { type DueBatch, listOwnBatches, putOffBatch, readDueBatches, takeBatch } from './batches/find-batches.ts';
export { listBatches } from './batches/list-batches.ts';
export {
  type BatchState,
  readBatch,
  readBlob,
  readManifest,
  readOutput,
  readResultLines,
  readTasks,
  type StoredBatch,
  type StoredTask,
} from './batches/read-batch.ts';
export {
  blobNameOf,
  cancelBatch,
  type NewBatch,
  noteBatch,
  removeBatch,
  storeBatch,
  tooLarge as batchTooLarge,
} from './batches/store-batch.ts';
export { type Adopted, adopt } from './host/adopt.ts';
export { announce } from './host/announce.ts';
export { type Appended, append } from './host/append.ts';
export { appendTerminalOutput, type TerminalOutputReply } from './host/append-terminal-output.ts';
export { clear } from './host/clear.ts';
export { closeUndriven } from './host/close-undriven.ts';
export { declare, type StoredOutput } from './host/declare.ts';
export { type Entry, type Rung, type Taken, toRung } from './host/entry.ts';
export { type Finished, type FinishOptions, finish } from './host/finish.ts';
export { readFirstResult } from './host/first-attempt.ts';
export { hold } from './host/hold.ts';
export {
  createHostMailbox,
  type HostMailbox,
  type HostMailboxCalls,
  type HostMailboxOptions,
  type OwnedCalls,
} from './host/host-mailbox.ts';
export { type InputRead, readInput } from './host/input.ts';
export { addLate, type LateAdded, type LatePosition } from './host/late.ts';
export type { Fenced, Owner } from './host/owner.ts';
export { type Head, peek } from './host/peek.ts';
export { type AttemptToRepeat, putBack } from './host/put-back.ts';
export { refuseRequest } from './host/refuse-request.ts';
export { release } from './host/release.ts';
export { rerun } from './host/rerun.ts';
export { take } from './host/take.ts';
export { withdraw } from './host/withdraw.ts';
export { answerHeld, type HeldDecision, type HeldReply } from './producer/answer-held.ts';
export { appendTerminalInput, type TerminalInputReply } from './producer/append-terminal-input.ts';
export { callHost } from './producer/call-host.ts';
export { type Cancelled, cancel } from './producer/cancel.ts';
export { type Closed, close } from './producer/close.ts';
export { discard } from './producer/discard.ts';
export { type InboxNotice, notify, parseInboxMessage, sendReply } from './producer/inbox.ts';
export { type Opened, open } from './producer/open.ts';
export { DRIVER_GONE_MS, RENEW_DRIVER_EVERY_MS, renewDriver } from './producer/renew-driver.ts';
export { type Submission, type Submitted, submit } from './producer/submit.ts';
export { type InputWrite, type InputWritten, writeInput } from './producer/write.ts';
export { type BriefEvent, type BriefEvents, readBriefEvents } from './read/brief-events.ts';
export { type Phase, readGeneration, readSealedSpec } from './read/generation.ts';
export { hashIdempotencyKey, readIdempotencyKey } from './read/idempotency.ts';
export { type EntryRecord, readRecord } from './read/record.ts';
export { readSealedReply, storeReply, takeReply } from './read/reply.ts';
export { readCancelRequest, readCloseRequest } from './read/requests.ts';
export { readSandboxOwner, readStoredSession, type StoredSession } from './read/session-state.ts';
export { readStoredEvent, readStream, type StoredEvent } from './read/stream.ts';
export { readTerminalInput, readTerminalOutput, readTerminalProgress, type TerminalMessage } from './read/terminal.ts';
export {
  beginToolCall,
  endToolCall,
  readToolCall,
  sayToolEvent,
  type ToolCallRef,
  type ToolEnd,
} from './tools/tool-calls.ts';
export { type AuditPlace, anchorAudit, readAuditHeads, readAuditPlaces } from './upkeep/audit-heads.ts';
export {
  type AuditChainState,
  appendAuditRecords,
  forgetAuditChains,
  listOldAuditRecords,
  type OldAuditRecords,
  readAuditChains,
  readAuditRecords,
  readNewestAuditRecords,
  removeOldAuditRecords,
  type SealedAuditRecords,
  storeAuditBytes,
} from './upkeep/audit-records.ts';
export { failWaitingEntries } from './upkeep/fail-waiting.ts';
export { forget } from './upkeep/forget.ts';
export { postpone } from './upkeep/postpone.ts';
export { recordNotice } from './upkeep/record-notice.ts';
export { type SweepLimits, type Swept, sweep } from './upkeep/sweep.ts';
