import type { PlacementClass, SessionJob, SessionJobs } from '@shellfleet/admission';
import type { Adopted, Owner, Sealer } from '@shellfleet/mailbox';
import type { FleetKeys } from '@shellfleet/protocol';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { HostLog } from '../host-log/host-log.ts';
import type { Lease, Leases } from '../lease/leases.ts';
import { createSessionRedaction, redactLog } from '../redaction/session-redaction.ts';
import { createLateClean, LateOutput } from '../run/late-output.ts';
import type { RunDeps } from '../run/run-deps.ts';
import type { RunningEntries } from '../run/running-entries.ts';
import type { Sandboxes } from '../sandbox/sandbox.ts';
import { describeShell } from '../shell/describe-shell.ts';
import { SessionShell } from '../shell/session-shell.ts';
import { SessionTerminals } from '../terminals/session-terminals.ts';
import { Announcements } from './announcements.ts';
import type { Gate } from './gate.ts';
import { openSpec } from './open-spec.ts';

/** What the worker gives each of its sessions. */
export interface SessionDeps {
  redis: Redis;
  fleet: FleetKeys;
  hostId: string;
  sealer: Sealer;
  jobs: SessionJobs;
  leases: Leases;
  /** of a lock just taken */
  lockMs: number;
  /** the placement classes that this host offers */
  offers: readonly PlacementClass[];
  sandboxes: Sandboxes;
  openGate: Gate;
  hostLog: HostLog;
  running: RunningEntries;
  logger: Logger;
}

/** What the parts of a session ask its actor, and tell it. */
export interface SessionActor
  extends Pick<RunDeps, 'signal' | 'opened' | 'isCancelled' | 'onTurn' | 'onInputBell' | 'mayTakeNext'> {
  /** The epoch that a Result last said. */
  saidEpoch(): number;
  /** The worker stops. */
  isStopping(): boolean;
  /** Aborts when nobody waits any more for the shell that is being opened. */
  unwanted: AbortSignal;
  onFenced(): void;
  /** The shell went away while nothing of the mailbox ran. */
  onShellGone(): void;
}

/** A session that this host owns: its parts, and its actor, in the hands of each step. */
export interface ServedSession extends RunDeps, SessionActor {
  job: SessionJob;
  jobs: SessionJobs;
  /** names this life of the session id */
  generation: string;
  lease: Lease;
  late: LateOutput;
  terminals: SessionTerminals;
  announcements: Announcements;
}

/** Puts together what serves a session that was just adopted. `logger`: its own. */
export function createServedSession(
  job: SessionJob,
  adopted: Adopted,
  owner: Owner,
  lease: Lease,
  actor: SessionActor,
  { sealer, sandboxes, openGate, hostLog, running, jobs, logger: plainLogger }: SessionDeps,
): ServedSession {
  const { keys } = owner;
  const { signal, onFenced } = actor;
  const spec = openSpec(adopted.spec, keys, sealer);
  const redaction = createSessionRedaction(spec, keys, sealer);
  const logger = redactLog(plainLogger, redaction);
  if (redaction.warnings.length > 0) logger.warn({ warnings: redaction.warnings }, 'redaction.warnings');

  const terminals = new SessionTerminals({
    owner,
    sealer,
    signal,
    logger,
    env: { ...spec.env, ...spec.secrets },
    output: {
      createStage: (before) => redaction.createRedactor({ before }),
      secrets: Object.values(spec.secrets),
    },
    onFenced,
  });
  const late = new LateOutput({
    owner,
    streamBytes: spec.output.streamBytes,
    createClean: (streamBytes) => createLateClean(streamBytes, redaction.createRedactor),
    signal,
    onFenced,
    logger,
  });
  const shell = new SessionShell(
    {
      ref: { namespace: keys.namespace, tenant: keys.tenant, session: keys.session },
      spec,
      redaction,
      fence: owner.fence,
      sandboxes,
      openGate,
      onLate: late.push.bind(late),
      onAbandoned: () => void late.end(),
      logger,
      onGone: actor.onShellGone,
      onConnected: (shellTerminals) => terminals.connect(shellTerminals),
    },
    adopted.epoch,
  );
  const announcements = new Announcements({ owner, shell, redaction, signal, onFenced, logger }, adopted.epoch);
  return {
    ...actor,
    ...{ job, jobs, generation: adopted.generation, lease, owner, sealer, hostLog, logger },
    ...{ spec, redaction, shell, late, terminals, announcements },
    othersRun: () => running.hasOthers,
    describeShell: (end) => describeShell(shell, actor.saidEpoch(), end),
  };
}
