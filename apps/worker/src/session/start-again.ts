import type { Entry } from '@shellfleet/mailbox';
import { ranInWider } from '../run/run-entry.ts';
import type { SessionParts } from './session-parts.ts';
import { mayRunAgain } from './start-entry.ts';
import type { EndUnrun, Step } from './step.ts';

/** Starts an idempotent entry again whose shell was lost, if it has starts left and is still admitted. Else ends it. */
export async function startAgain(entry: Entry, orElse: EndUnrun, parts: SessionParts): Promise<Step> {
  const { context } = parts;
  const ends: Step = { type: 'end', entry, how: orElse };
  if (entry.retry !== 'idempotent' || ranInWider(entry, context)) return ends;
  if (!(await mayRunAgain(entry, parts))) return ends;
  const { mailbox } = context;
  const again = await mailbox.rerun(entry);
  if (again.type !== 'restarted') return ends;
  const { fence, host } = mailbox.owner;
  const restarted: Entry = {
    ...{ ...entry, fence, host, starts: entry.starts + 1 },
    ...{ startedAt: again.startedAt, firstStartedAt: again.firstStartedAt },
    ...{ offsets: { stdout: 0, stderr: 0 }, seq: 0 },
  };
  return { type: 'start', entry: restarted, orElse };
}
