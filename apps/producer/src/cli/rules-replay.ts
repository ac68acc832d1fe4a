import { type CompiledRules, type Decision, decide } from '@shellfleet/policy';
import { type AuditEvent, type AuditRecord, ShellfleetError } from '@shellfleet/protocol';
import { stateDirectory } from '@shellfleet/setup';
import { auditsOfMachine, readAudit } from './audit-records.ts';
import type { Context } from './context.ts';
import { readRules } from './rules-check.ts';

// Replays rules over the commands in the audits of this machine. An audit has the redacted scripts, cut if very long,
// and the policy of each session, but not the session's own rules and `approval`.

export interface ReplayFlags {
  since: number;
  file?: string[];
  audit?: string;
  json?: boolean;
}

type Submission = Extract<AuditEvent, { type: 'submission' }>;

interface Replayed {
  at: string;
  tenant: string;
  session: string;
  script: string;
  requirement: Decision['requirement'];
  reason: string | undefined;
}

interface Tally {
  commands: number;
  forbidden: number;
  needsApproval: number;
  /** Number of started commands of whose script the audit has only a part. */
  unknown: number;
}

export async function replayRules({ terminal, config }: Context, flags: ReplayFlags): Promise<void> {
  if (flags.file === undefined) throw new ShellfleetError('COMMAND_INVALID', 'Name the rules to try with --file.');
  const { enforced, reported } = await readRules(flags.file);
  const directories = flags.audit === undefined ? await auditsOfMachine(stateDirectory(config.env)) : [flags.audit];
  const tally: Tally = { commands: 0, forbidden: 0, needsApproval: 0, unknown: 0 };
  const changed: Replayed[] = [];
  const since = Date.now() - flags.since;
  for (const directory of directories)
    for await (const one of replay(readAudit(directory, since), since, [...enforced, ...reported], tally))
      if (flags.json === true) await terminal.json({ type: 'command', ...one });
      else changed.push(one);
  if (flags.json === true) return terminal.json({ type: 'summary', ...tally });
  if (changed.length > 0)
    await terminal.table([
      ['AT', 'TENANT', 'SESSION', 'IT WOULD BE', 'WHY', 'SCRIPT'],
      ...changed.map(({ at, tenant, session, requirement, reason = '', script }) => [
        ...[at, tenant, session, requirement === 'forbidden' ? 'denied' : 'asked', reason],
        shorten(script),
      ]),
    ]);
  for (const line of describe(tally)) await terminal.line(line);
}

/** Counts every started command, and yields those that the rules would have stopped. */
async function* replay(
  records: AsyncIterable<{ tenant: string; record: AuditRecord }>,
  since: number,
  operator: readonly CompiledRules[],
  tally: Tally,
): AsyncGenerator<Replayed> {
  const submitted = new Map<string, Submission>();
  for await (const { tenant, record } of records) {
    const { event, at } = record;
    if (!('entry' in event) || event.entry === undefined) continue;
    const id = `${tenant} ${event.session} ${event.entry}`;
    if (event.type === 'submission') submitted.set(id, event);
    if (event.type === 'end') submitted.delete(id);
    // Skips second attempts, which were counted with the first.
    if (event.type !== 'start' || event.attempt !== undefined || Date.parse(at) < since) continue;
    const submission = submitted.get(id);
    if (submission !== undefined && submission.kind !== 'command') continue;
    tally.commands += 1;
    if (submission?.script === undefined || submission.scriptOmitted !== undefined) {
      tally.unknown += 1;
      continue;
    }
    const { script, session, policy } = submission;
    const { requirement, reason } = decide(script, {
      ...{ operator, approval: undefined, escalate: false },
      sandboxed: policy !== 'host',
    });
    if (requirement === 'skip') continue;
    if (requirement === 'forbidden') tally.forbidden += 1;
    else tally.needsApproval += 1;
    yield { at, tenant, session, script, requirement, reason };
  }
}

function describe({ commands, forbidden, needsApproval, unknown }: Tally): string[] {
  return [
    `Of ${commands} commands that started, these rules would have denied ${forbidden} and asked a person about ${needsApproval}.`,
    ...(unknown === 0 ? [] : [`Not known: ${unknown}, of which the audit does not have the whole script.`]),
    'Not known either: what the sessions ask for themselves (approval, execPolicy), what was redacted, and what other machines ran.',
  ];
}

const shorten = (script: string) => (script.length <= 60 ? script : `${script.slice(0, 59)}…`);
