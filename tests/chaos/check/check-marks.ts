import type { Case } from './check.ts';
import { isCutShort, mayHaveRun, resultOf } from './permits.ts';

/** Checks that commands with a Result of their own ran once, one at a time, in the order of their submits. */
export function checkMarks(history: Case): void {
  const { session, operations, permits, report } = history;
  const begins = session.marks.filter(({ type }) => type === 'begin').map(({ op }) => op);
  const counts = new Map<string, number>();
  for (const op of begins) counts.set(op, (counts.get(op) ?? 0) + 1);
  const byId = new Map(operations.map((own) => [own.operation.id, own]));

  for (const [op, count] of counts) {
    const own = byId.get(op);
    const isForgotten = own !== undefined && (permits.keyForgotten(own) || permits.beginForgotten(own));
    if (count > 1 && !isForgotten) report('doubled', `${op} ran ${count} times`);
    if (own === undefined) report('foreign', `${op} ran and was never submitted`);
    const result = own === undefined ? undefined : resultOf(own);
    if (result !== undefined && !mayHaveRun(result))
      report('wrong result', `${op} ran, and its Result is ${result.errorCode}`);
  }
  for (const own of operations) {
    const result = resultOf(own);
    const { id } = own.operation;
    if (result !== undefined && !isCutShort(result) && !counts.has(id))
      report('lost', `${id} has the Result ${result.outcome} and did not run`);
  }

  // A submit that Redis has lost is repeated later, and takes its place in the order then.
  const ordered = [...counts.keys()].filter((op) => {
    const own = byId.get(op);
    return own !== undefined && !permits.tailLost(own.submittedAt, own.endedAt);
  });
  for (const [place, op] of ordered.entries()) {
    const before = ordered[place - 1];
    if (before === undefined) continue;
    if ((byId.get(before)?.operation.index ?? 0) > (byId.get(op)?.operation.index ?? 0))
      report('reordered', `${op} ran after ${before}`);
  }
  checkOverlaps(history);
}

function checkOverlaps({ session, operations, report }: Case): void {
  const cutShort = new Set(
    operations.filter((own) => own.results.some(isCutShort)).map(({ operation }) => operation.id),
  );
  const endsShell = new Set(operations.filter((own) => own.operation.expect.endsShell).map((own) => own.operation.id));
  let running: string | undefined;
  for (const { type, op } of session.marks) {
    if (type === 'end') {
      if (running === op) running = undefined;
      continue;
    }
    // A command may run on at a lost host until that host stops it.
    if (running !== undefined && running !== op && !cutShort.has(running) && !endsShell.has(running))
      report('overlapping', `${op} began while ${running} ran`);
    running = op;
  }
}
