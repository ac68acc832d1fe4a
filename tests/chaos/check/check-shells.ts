import type { Case } from './check.ts';
import { isCutShort, mayHaveRun, reportsLoss, resultOf } from './permits.ts';

/** Upper bound of commands that Redis may have forgotten and that run again after later ones. */
const MOST_FORGOTTEN = 20;

/**
 * Checks that state lasts from command to command, and that a fresh shell is reported as fresh. Every command counts
 * in a variable of its shell and prints the count, so a replaced shell counts from 1 again.
 */
export function checkShells({ session, operations, permits, report }: Case): void {
  let count = 0;
  /** Number of commands of which it is unknown whether they raised the count. */
  let unsure = 0;
  let lossReported = true;
  let epoch = 0;
  let hostIds = new Set<string>();
  let since = Number.NEGATIVE_INFINITY;
  for (const own of operations) {
    const result = resultOf(own);
    const { id, expect } = own.operation;
    const isReadable = result?.head.startsWith(`${id} `) === true;
    // The count is unknown when Redis lost the first line of the output with its newest writes.
    const isGone = !isReadable && permits.tailLost(own.submittedAt, own.endedAt);
    if (result === undefined || isCutShort(result) || isGone) {
      unsure += result === undefined || mayHaveRun(result) ? 1 : 0;
      lossReported ||= result !== undefined && reportsLoss(result);
      continue;
    }
    const counted = Number(result.head.slice(id.length + 1));
    const isFresh = counted <= 1 + unsure && (lossReported || result.shell.state === 'lost');
    const isNext = counted > count && counted <= count + 1 + unsure;
    // A command that Redis forgot may have been submitted again after later ones, and a forgotten Result may have
    // reported the loss of a shell.
    const isForgotten = permits.tailLost(own.submittedAt, own.endedAt);
    if (!isNext && !isFresh && !isForgotten)
      report(
        'shell',
        `${id}: counted ${counted} after ${count}, and its Result reports the shell as '${result.shell.state}'`,
      );
    if (result.shell.epoch < epoch && !isForgotten)
      report('shell', `${id}: epoch ${result.shell.epoch} after ${epoch}`);
    const permitted = expect.endsShell || permits.shellLost(session, hostIds, since, own.endedAt);
    if (result.shell.state === 'lost' && !lossReported && !permitted)
      report('unjustified loss', `${id}: its shell was lost`);
    hostIds = new Set(result.hostId === null ? [] : [result.hostId]);
    // If Redis forgot the epoch of a shell, the next shell may have the same epoch or a lower one.
    epoch = isForgotten ? 0 : result.shell.epoch;
    count = expect.endsShell ? 0 : counted;
    lossReported = expect.endsShell || isForgotten;
    unsure = isForgotten ? MOST_FORGOTTEN : 0;
    since = own.submittedAt;
  }
}
