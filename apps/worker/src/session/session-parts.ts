import type { Adopted, HostMailbox, Owner } from '@shellfleet/mailbox';
import {
  type Placement,
  type PlacementClass,
  type SessionJob,
  type SessionJobs,
  toPlacement,
} from '@shellfleet/placement';
import type { WiderSettings } from '@shellfleet/policy';
import type { FleetKeys, ResolvedSessionSpec } from '@shellfleet/protocol';
import { type Sealer, sealMarkOf } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Admission, AdmissionQuestion, SessionAdmission } from '../admission/admission.ts';
import type { SessionApprovals } from '../approvals/host-approvals.ts';
import type { Audit } from '../audit/audit.ts';
import { createSessionEgress, type EgressSettings } from '../egress/create-session-egress.ts';
import type { HostLog } from '../host-log/host-log.ts';
import type { Journal } from '../journal/journal.ts';
import type { RedisLosses } from '../journal/redis-losses.ts';
import type { Lease, Leases } from '../lease/leases.ts';
import { createTerminalChain } from '../output/output-chains.ts';
import { createOutside } from '../outside/create-outside.ts';
import { createSessionRedaction, redactLog } from '../redaction/session-redaction.ts';
import { toBegunId } from '../run/begun-id.ts';
import { FileCalls } from '../run/file-calls.ts';
import { LateOutput } from '../run/late-output.ts';
import type { RunningEntries } from '../run/running-entries.ts';
import type { SessionContext } from '../run/session-context.ts';
import type { KeptSandboxes } from '../sandbox/kept-sandboxes.ts';
import type { Sandboxes } from '../sandbox/sandbox.ts';
import { SessionShell } from '../shell/session-shell.ts';
import { SessionTerminals } from '../terminals/session-terminals.ts';
import { auditTerminals } from '../terminals/terminal-audit.ts';
import { admitFile } from './admit-file.ts';
import { AdmittedEntry } from './admitted-entry.ts';
import { Announcements } from './announcements.ts';
import { auditEgress } from './audit-egress.ts';
import { DriverWatch } from './driver-watch.ts';
import { HeldHead } from './held-head.ts';
import { Rest } from './rest.ts';

/** Everything that the worker gives each of its sessions. */
export interface SessionDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  /** Names this process. */
  boot: string;
  sealer: Sealer;
  jobs: SessionJobs;
  leases: Leases;
  /** The placement classes that this host offers. */
  offers: readonly PlacementClass[];
  /** Whether its operator's settings let this host run what the spec asks for. */
  serves(spec: ResolvedSessionSpec): Promise<boolean>;
  /** Of a lock that was just taken, before the session's own grace is known. */
  lockMs: number;
  sandboxes: Sandboxes;
  /** Whether this host opens shells at present: not while it drains, nor while its engine does not answer. */
  takesNew(): boolean;
  /** Limits how many sandboxes of the host are opened at a time. */
  limitOpening<T>(open: () => Promise<T>): Promise<T>;
  hostLog: HostLog;
  kept: KeptSandboxes;
  hostEntries: RunningEntries;
  journal: Journal;
  redisLosses: RedisLosses;
  audit: Audit;
  readerStallMs: number;
  /** What the proxies of sessions may let through. */
  egress: EgressSettings;
  /** What commands get that leave the sandbox of their session. Undefined: none leaves. */
  wider?: WiderSettings | undefined;
  /** What the host admits. */
  admission: Admission;
  /** Of all sessions of the host. */
  approvals: SessionApprovals;
  logger: Logger;
}

export interface SessionEvents {
  /** The mailbox refused a write because another host owns the session. */
  onFenced(): void;
  /** The shell ended while no entry of the mailbox ran. */
  onShellGone(): void;
}

/** The parts of a session that this host has adopted, for the steps of its loop. */
export interface SessionParts {
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
  readonly rest: Rest;
  readonly job: SessionJob;
  readonly jobs: SessionJobs;
  readonly lease: Lease;
  /** Where the session runs, by its sealed spec. */
  readonly placement: Placement;
  /** As the mailbox had them when this host adopted the session. */
  readonly adopted: { spec: string; createdAt: number; driven: boolean };
}

/** Creates the parts of a session that was just adopted. `signal` aborts when the host loses the session. */
export function createSessionParts(
  job: SessionJob,
  adopted: Adopted,
  spec: ResolvedSessionSpec,
  granted: HostMailbox,
  lease: Lease,
  signal: AbortSignal,
  { onShellGone }: SessionEvents,
  deps: SessionDeps,
): SessionParts {
  const { keys } = granted.owner;
  const ref = { namespace: keys.namespace, tenant: keys.tenant, session: keys.session };
  const admission = deps.admission.forSession(spec, ref);
  const mailbox = granted.under(() => admission.digest);
  const { owner } = mailbox;
  const { sealer, hostLog, hostEntries, journal, redisLosses, audit, readerStallMs, sandboxes, jobs } = deps;
  const { generation } = adopted;
  const redaction = createSessionRedaction(spec, keys, sealer);
  const logger = redactLog(deps.logger, redaction);
  if (redaction.warnings.length > 0) logger.warn({ warnings: redaction.warnings }, 'redaction.warnings');
  const onEgressRefused = auditEgress(audit, { tenant: keys.tenant, session: keys.session, generation }, redaction);
  const egress = createSessionEgress(spec, deps.egress, { logger, onRefused: onEgressRefused });
  const context: SessionContext = {
    ...{
      mailbox,
      owner,
      generation,
      spec,
      sealer,
      redaction,
      hostLog,
      hostEntries,
      journal,
      redisLosses,
      audit,
      logger,
      signal,
    },
    takesRealPaths: (operation) => admission.digest !== '' && admission.takesRealPaths(operation),
    stoppedUnstored: new Set<string>(),
    readerStallMs,
    ...{ egress, onEgressRefused },
    outside: createOutside(spec, deps.wider, {
      ...{ ref, sandboxes },
      egress: deps.egress,
      limitOpening: deps.limitOpening,
    }),
  };
  const terminals = new SessionTerminals({
    ...{ mailbox, sealer, signal, logger, audit: auditTerminals(audit, keys, generation) },
    env: { ...spec.env, ...spec.secrets },
    refusal: () => (admission.digest === '' ? undefined : admission.refuseTerminal()),
    begun: {
      knows: (terminal) => journal.knows(toBegunId({ id: terminal }, keys)),
      record: (terminal) => journal.record(toBegunId({ id: terminal }, keys), generation),
    },
    output: {
      createStage: (before) => createTerminalChain(redaction.createRedactor, before),
      secrets: Object.values(spec.secrets),
    },
    onCount: (count) => egress?.setTerminals(count),
  });
  const late = new LateOutput({
    ...{ mailbox, signal, logger },
    streamBytes: spec.output.streamBytes,
    createRedactor: redaction.createRedactor,
  });
  const shell = new SessionShell(
    {
      ...{ ref, spec, redaction, sandboxes, egress, logger },
      fence: owner.fence,
      limitOpening: deps.limitOpening,
      ...(spec.keepOnFailure && {
        keep: (sandbox, reason) => deps.kept.keep(sandbox, generation, redaction.value(reason)),
      }),
      onLate: late.push.bind(late),
      onAbandoned: () => void late.end(),
      onGone: onShellGone,
      onConnected: (shellTerminals) => terminals.connect(shellTerminals),
    },
    {
      epoch: adopted.epoch,
      reportedEpoch: adopted.reportedEpoch,
      lossReason: lossReasonOf(adopted, owner),
      image: adopted.image,
    },
  );
  const files = new FileCalls({
    ...{ context, shell },
    isHeld: () => lease.held(),
    admit: (file, begin) =>
      admitFile(file, { context, admission, about: aboutSession({ context, shell }) }, deps.approvals, begin),
  });
  const announcements = new Announcements(context, shell, adopted.epoch);
  const placement = toPlacement(spec, sealMarkOf(adopted.spec));
  const driver = new DriverWatch(mailbox, adopted.driven);
  const rest = new Rest({ mailbox, journal });
  const heldHead = new HeldHead(mailbox, admission, adopted.epoch);
  return {
    context,
    admission,
    admitted: new AdmittedEntry(),
    shell,
    late,
    terminals,
    files,
    announcements,
    driver,
    heldHead,
    rest,
    job,
    jobs,
    lease,
    placement,
    adopted,
  };
}

/** What a verdict about an entry of this session can depend on, beside the entry. */
export function aboutSession({
  context: { owner, generation, spec, outside },
  shell,
}: Pick<SessionParts, 'context' | 'shell'>): Omit<AdmissionQuestion, 'entryId' | 'opens' | 'payload' | 'attempt'> {
  const { tenant, session } = owner.keys;
  // A shell that is lost is replaced by another one.
  const epoch = shell.hasState ? shell.epoch : shell.epoch + 1;
  return { tenant, session, generation, spec, epoch, outside };
}

/** Why the shell of an earlier owner is gone, unless it is adopted. */
function lossReasonOf({ shell, loss }: Adopted, { host }: Owner): string {
  if (shell === undefined) return loss || 'its sandbox was replaced';
  return shell.host === host ? 'its sandbox was gone when its worker came back' : `its host ${shell.host} was lost`;
}
