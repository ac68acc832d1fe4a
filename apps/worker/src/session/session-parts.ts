import type { Adopted, Owner } from '@shellfleet/mailbox';
import { type Placement, type SessionJob, toPlacement } from '@shellfleet/placement';
import { isMovable } from '@shellfleet/protocol';
import { sealMarkOf } from '@shellfleet/sealing';
import type { AdmissionInput, SessionAdmission } from '../admission/admission.ts';
import { toBegunId } from '../journal/journal.ts';
import type { Lease } from '../lease/leases.ts';
import { untilHeld } from '../lease/until-held.ts';
import { FileCalls } from '../run/file-calls.ts';
import type { SessionHost } from '../run/host-services.ts';
import { LateOutput } from '../run/late-output.ts';
import type { SessionContext } from '../run/session-context.ts';
import { SessionShell } from '../shell/session-shell.ts';
import { SessionTerminals } from '../terminals/session-terminals.ts';
import { auditTerminals } from '../terminals/terminal-audit.ts';
import { admitFile } from './admit-file.ts';
import { AdmittedEntry } from './admitted-entry.ts';
import { Announcements } from './announcements.ts';
import { createSessionContext, type SessionStart, type ShelllessContext } from './create-context.ts';
import { DriverWatch } from './driver-watch.ts';
import { HeldHead } from './held-head.ts';
import type { Hosting } from './hosting.ts';

/** The parts of an adopted session, for the steps of its loop. */
export interface SessionParts {
  readonly hosting: Hosting;
  readonly context: SessionContext;
  readonly admission: SessionAdmission;
  readonly admitted: AdmittedEntry;
  readonly shell: SessionShell;
  readonly late: LateOutput;
  readonly terminals: SessionTerminals;
  readonly files: FileCalls;
  readonly announcements: Announcements;
  readonly driver: DriverWatch;
  readonly heldHead: HeldHead;
  readonly job: SessionJob;
  readonly lease: Lease;
  /** Whether any worker can reach the shell. */
  readonly isMovable: boolean;
  /** Where the session runs, by its sealed spec. */
  readonly placement: Placement;
  /** Fields of the mailbox at the adoption. */
  readonly adopted: { spec: string; createdAt: number; driven: boolean };
}

/** Creates the parts of a session that was just adopted. */
export function createSessionParts(start: SessionStart, host: SessionHost): SessionParts {
  const { job, adopted, spec, lease, hosting } = start;
  const { namespace, tenant, session } = start.mailbox.owner.keys;
  const admission = host.hostAdmission.forSession(spec, { namespace, tenant, session });
  const mailbox = start.mailbox.under(() => admission.digest);
  const made = createSessionContext({ ...start, mailbox }, admission, host);
  const terminals = createTerminals(made, admission);
  const late = new LateOutput({
    ...{ mailbox, signal: hosting.lost, logger: made.logger },
    streamBytes: spec.output.streamBytes,
    createRedactor: made.redaction.createRedactor,
  });
  const shell = createShell(start, made, terminals, late);
  const context = { ...made, shell };
  const files = new FileCalls({
    context,
    isHeld: () => lease.held(),
    admit: (file, begin) =>
      admitFile(file, { context, admission, about: aboutSession({ context }) }, host.approvals, begin),
  });
  return {
    ...{ hosting, context, admission, admitted: new AdmittedEntry(), shell, late, terminals, files },
    announcements: new Announcements(context, adopted.epoch),
    driver: new DriverWatch(mailbox, adopted.driven),
    heldHead: new HeldHead(mailbox, admission, adopted.epoch),
    ...{ job, lease, adopted, isMovable: isMovable(spec.policy.type) },
    placement: toPlacement(spec, sealMarkOf(adopted.spec)),
  };
}

function createTerminals(context: ShelllessContext, admission: SessionAdmission): SessionTerminals {
  const { owner, generation, spec, redaction, journal, egress } = context;
  const { keys } = owner;
  return new SessionTerminals({
    ...context,
    audit: auditTerminals(context.audit, keys, generation),
    env: { ...spec.env, ...spec.secrets },
    refusal: () => (admission.digest === '' ? undefined : admission.refuseTerminal()),
    begun: {
      knows: (terminal) => journal.knows(toBegunId({ id: terminal }, keys)),
      record: (terminal) => journal.record(toBegunId({ id: terminal }, keys), generation),
    },
    output: {
      createStage: (before) => redaction.createRedactor({ before }),
      secrets: Object.values(spec.secrets),
    },
    onCount: (count) => egress?.setTerminals(count),
  });
}

function createShell(
  { adopted, hosting, lease }: SessionStart,
  context: ShelllessContext,
  terminals: SessionTerminals,
  late: LateOutput,
): SessionShell {
  const { owner, spec, redaction, kept } = context;
  const { namespace, tenant, session } = owner.keys;
  return new SessionShell(
    {
      ...context,
      ref: { namespace, tenant, session },
      fence: owner.fence,
      ...(spec.keepOnFailure && {
        keep: (sandbox, reason) => kept.keep(sandbox, adopted.generation, redaction.value(reason)),
      }),
      onLate: late.push.bind(late),
      onAbandoned: () => void late.end(),
      onGone: () => hosting.wakeUps.notify(),
      onConnected: (shellTerminals) => terminals.connect(shellTerminals),
      ...(isMovable(spec.policy.type) && {
        movable: {
          lost: hosting.lost,
          onFencedOff: () => hosting.become('fenced'),
          mayRemove: async () => untilHeld(lease, hosting.lost),
        },
      }),
    },
    {
      epoch: adopted.epoch,
      reportedEpoch: adopted.reportedEpoch,
      lossReason: lossReasonOf(adopted, owner, isMovable(spec.policy.type)),
      image: adopted.image,
    },
  );
}

/** Returns everything on which a verdict about an entry can depend, except the entry. */
export function aboutSession({
  context: { owner, generation, spec, wider, shell },
}: Pick<SessionParts, 'context'>): Omit<AdmissionInput, 'entryId' | 'opens' | 'payload' | 'attempt'> {
  const { tenant, session } = owner.keys;
  // A lost shell is replaced by a shell with the next epoch.
  const epoch = shell.hasState ? shell.epoch : shell.epoch + 1;
  return { tenant, session, generation, spec, epoch, wider };
}

/** Returns why the shell of an earlier owner is gone, unless it is adopted. */
function lossReasonOf({ shell, loss }: Adopted, { host }: Owner, isMoved: boolean): string {
  if (shell === undefined) return loss || 'its sandbox was replaced';
  if (isMoved) return 'its sandbox was gone when a worker adopted the session';
  return shell.host === host ? 'its sandbox was gone when its worker came back' : `its host ${shell.host} was lost`;
}
