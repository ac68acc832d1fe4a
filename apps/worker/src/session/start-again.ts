import type { Entry } from '@shellfleet/mailbox';
import { ranOutside } from '../run/runs-outside.ts';
import type { SessionContext } from '../run/session-context.ts';

/**
 * Starts a running entry again whose shell was lost, if its submitter declared it idempotent, it has starts left, and `mayRun`: an answer was
 * about the shell that is gone. Undefined when it must not run again, or when no other shell could be opened for it.
 */
export async function startAgain(
  entry: Entry,
  context: SessionContext,
  { mayRun, makeReady }: { mayRun(): Promise<boolean>; makeReady(): Promise<boolean> },
): Promise<Entry | undefined> {
  if (entry.retry !== 'idempotent' || ranOutside(entry, context) || !(await mayRun())) return undefined;
  const { mailbox } = context;
  const again = await mailbox.rerun(entry);
  if (again.type !== 'restarted' || !(await makeReady())) return undefined;
  const { fence, host } = mailbox.owner;
  return {
    ...{ ...entry, fence, host, starts: entry.starts + 1, startedAt: Date.now() },
    ...{ offsets: { stdout: 0, stderr: 0 }, seq: 0 },
  };
}
