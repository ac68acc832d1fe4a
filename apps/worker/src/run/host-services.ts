import type { PlacementClass, SessionJobs } from '@shellfleet/placement';
import type { FleetKeys, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Connected } from '@shellfleet/redis';
import type { Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Admission } from '../admission/admission.ts';
import type { HostApprovals } from '../approvals/host-approvals.ts';
import type { Audit } from '../audit/audit.ts';
import type { WorkerConfig } from '../config/config.ts';
import type { Journal } from '../journal/journal.ts';
import type { RedisLosses } from '../journal/redis-losses.ts';
import type { Leases } from '../lease/leases.ts';
import type { OverflowLogs } from '../overflow-log/overflow-logs.ts';
import type { KeptSandboxes } from '../sandbox/kept-sandboxes.ts';
import type { Sandboxes } from '../sandbox/sandbox.ts';
import type { RunningEntries } from './running-entries.ts';

/** What a worker process has once, for all of its work. It exists before the host takes part in the fleet. */
export interface HostServices {
  readonly settings: WorkerConfig;
  readonly hostId: string;
  /** Names this process among those that act as this host one after another. */
  readonly boot: string;
  /** Names the machine (its state folder), which outlives a process. */
  readonly machine: string;
  /** Version of this program. */
  readonly version: string;
  /** Keyspace of the fleet. */
  readonly namespace: string;
  readonly fleet: FleetKeys;
  readonly connected: Connected;
  /** The client of `connected`. */
  readonly redis: Redis;
  readonly sealer: Sealer;
  readonly sandboxes: Sandboxes;
  readonly overflowLogs: OverflowLogs;
  /** The entries and calls that this host began, also before Redis lost its record of them. */
  readonly journal: Journal;
  readonly redisLosses: RedisLosses;
  readonly audit: Audit;
  readonly logger: Logger;
}

/** What a session uses of its host. */
export interface SessionHost extends HostServices {
  readonly jobs: SessionJobs;
  readonly leases: Leases;
  /** The placement classes that this host offers. */
  readonly offers: readonly PlacementClass[];
  /** Returns whether the settings of its operator let this host run what the spec asks for. */
  serves(spec: ResolvedSessionSpec): Promise<boolean>;
  /** Returns whether this host opens shells at present: not while it drains, nor while its engine does not answer. */
  takesNew(): boolean;
  /** Limits how many sandboxes of the host are opened at a time. */
  limitOpening<T>(open: () => Promise<T>): Promise<T>;
  readonly kept: KeptSandboxes;
  /** The entries that run on this host, in all sessions. */
  readonly hostEntries: RunningEntries;
  /** What the host admits. */
  readonly hostAdmission: Admission;
  readonly approvals: HostApprovals;
}
