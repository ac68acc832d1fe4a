import { isDeepStrictEqual } from 'node:util';
import type { SeenResult } from '../history/history.ts';
import type { OperationHistory } from '../history/operation-history.ts';
import type { Case } from './check.ts';
import { isCutShort, resultOf, START_FAILED } from './permits.ts';

/** Error codes for a session that was opened just before Redis lost its newest writes, and that is lost with them. */
const SESSION_GONE = ['SESSION_NOT_FOUND', 'SESSION_CLOSED'];

/**
 * Checks that every accepted command has one Result and one terminal event, and that submits are refused only while
 * something is out of reach.
 */
export function checkEnds(history: Case): void {
  const { session, operations, permits, forgets, report } = history;
  const terminals = Map.groupBy(session.terminals, ({ commandId }) => commandId);
  // Streams are cut at their oldest end, so no event is missing after the first remaining one.
  let isBeforeFirstEvent = true;
  for (const own of operations) {
    checkRefusals(own, permits, report);
    const { operation, commandIds, results, submittedAt, endedAt } = own;
    const tail = permits.tailLost(submittedAt, endedAt);
    if (commandIds.length > 1 && !tail)
      report('accepted twice', `${operation.id} was accepted as ${commandIds.join(' and ')}`);
    if (commandIds.length === 0) continue;
    const result = resultOf(own);
    if (own.expired && !permits.expired(submittedAt, endedAt))
      report('lost', `${operation.id}: its Result has expired`);
    if (result === undefined && !own.expired) report('lost', `${operation.id} was accepted and has no Result`);
    if (results.some((other) => !isDeepStrictEqual(other, result)) && !tail)
      report('two results', `${operation.id} had different Results: ${JSON.stringify(results)}`);
    const events = commandIds.flatMap((id) => terminals.get(id) ?? []);
    isBeforeFirstEvent &&= events.length === 0;
    const isCut = isBeforeFirstEvent && permits.streamCut(submittedAt);
    if (events.length > 1) report('two terminal events', `${operation.id} ended ${events.length} times`);
    if (events.length === 0 && !isCut && !tail && !own.expired && !forgets)
      report('no terminal event', `${operation.id} has none`);
    if (result !== undefined && events.some(({ outcome }) => outcome !== result.outcome) && !tail)
      report('two results', `${operation.id}: Result ${result.outcome}, event ${events.map((event) => event.outcome)}`);
  }
  const known = new Set(operations.flatMap(({ commandIds }) => commandIds));
  const unsure = operations.filter(({ commandIds }) => commandIds.length === 0).length;
  const foreign = [...terminals.keys()].filter((id) => !known.has(id));
  if (foreign.length > unsure) report('foreign', `commands that nobody submitted have ended: ${foreign.join(', ')}`);
  checkLosses(history);
}

function checkRefusals({ operation, refusals }: OperationHistory, permits: Case['permits'], report: Case['report']) {
  for (const { at, code, retryable } of refusals) {
    const isGone = SESSION_GONE.includes(code) && permits.sessionGone(at);
    if (!(retryable && permits.submitRefused(at)) && !isGone)
      report('refused', `${operation.id} was refused with ${code} at ${new Date(at).toISOString()}`);
  }
}

/** Checks that a loss is reported only when a shell, a host or the newest writes of Redis were lost. */
function checkLosses({ session, operations, permits, forgets, begun, report }: Case): void {
  const hostIds = new Set<string>();
  let since = Number.NEGATIVE_INFINITY;
  for (const own of operations) {
    const result = resultOf(own);
    if (result === undefined) continue;
    const { id, expect } = own.operation;
    // The host that reports a loss is not the lost one, so the lost host is unknown before the session's first Result.
    const isUnopened = result.errorCode === START_FAILED && permits.startRefused(own.submittedAt, own.endedAt);
    const permitted = isUnopened || permits.shellLost(session, hostIds, since, own.endedAt);
    if (isCutShort(result)) {
      if (!permitted) report('unjustified loss', `${id}: ${describe(result)}`);
      const mayHaveBegun = own.commandIds.some((commandId) => begun.has(commandId));
      const isExplained = permits.unheard(own) || permits.tailLost(own.submittedAt, own.endedAt);
      if (result.outcome === 'lost' && !mayHaveBegun && !isExplained && !forgets)
        report('lost unbegun', `${id}: no host began it`);
      continue;
    }
    since = own.submittedAt;
    hostIds.clear();
    if (result.hostId !== null) hostIds.add(result.hostId);
    const isExpected = result.outcome === expect.outcome && (expect.endsShell || result.exitCode === expect.exitCode);
    if (!isExpected) report('wrong result', `${id}: ${describe(result)}`);
  }
}

function describe({ outcome, exitCode, reason, errorCode, errorMessage, shell }: SeenResult): string {
  const parts = [outcome, exitCode, reason, errorCode, errorMessage, `shell ${shell.state}`, shell.reason];
  return parts.filter((part) => part !== undefined && part !== null).join(', ');
}
