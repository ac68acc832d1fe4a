import type { PlacementClass, SessionJobs } from '@shellfleet/placement';
import type { FleetKeys, PolicyName, ResolvedSessionSpec } from '@shellfleet/protocol';
import type { Connected } from '@shellfleet/redis';
import type { Sealer } from '@shellfleet/sealing';
import type { Redis } from 'ioredis';
import type { Admission } from '../admission/admission.ts';
import type { HostApprovals } from '../approvals/host-approvals.ts';
import type { Audit } from '../audit/audit.ts';
import type { WorkerConfig } from '../config/config.ts';
import type { HostMemory } from '../host/host-memory.ts';
import type { TenantUses } from '../host/tenant-use.ts';
import type { Journal } from '../journal/journal.ts';
import type { RedisLosses } from '../journal/redis-losses.ts';
import type { Leases } from '../lease/leases.ts';
import type { Logger } from '../log/logger.ts';
import type { RecentLines } from '../log/recent-lines.ts';
import type { WorkerMetrics } from '../metrics/worker-metrics.ts';
import type { OverflowLogs } from '../overflow-log/overflow-logs.ts';
import type { KeptSandboxes } from '../sandbox/kept-sandboxes.ts';
import type { Sandboxes } from '../sandbox/sandbox.ts';
import type { WarmPools } from '../shell/pool/warm-pools.ts';
import type { SinkState } from '../sink/sink-health.ts';
import type { RunningEntries } from './entry-run.ts';

/** Services of a worker process that exist before it takes part in the fleet. */
export interface HostServices {
  readonly settings: WorkerConfig;
  readonly hostId: string;
  /** Id of this process among those that act as this host one after another. */
  readonly boot: string;
  /** Id of the machine, which its state directory keeps. */
  readonly machine: string;
  readonly version: string;
  readonly namespace: string;
  readonly fleet: FleetKeys;
  readonly connected: Connected;
  readonly redis: Redis;
  readonly sealer: Sealer;
  readonly sandboxes: Sandboxes;
  readonly overflowLogs: OverflowLogs;
  /** Entries and calls that this host began, also those that Redis has lost. */
  readonly journal: Journal;
  readonly redisLosses: RedisLosses;
  readonly audit: Audit;
  readonly hostMemory: HostMemory;
  /** Directory of the files of the detached batches that this worker drives. It is emptied when the worker starts. */
  readonly batchDirectory: string;
  /** What is counted while the worker runs, if it has a port for metrics. */
  readonly metrics?: WorkerMetrics | undefined;
  /** Whether this worker exports spans. */
  readonly isTracing?: boolean | undefined;
  readonly logger: Logger;
  readonly recentLines: RecentLines;
  /** Where lines of the log and records of the audit are copied to. */
  readonly sinks: readonly SinkState[];
}

/** What a session uses of its host. */
export interface SessionHost extends HostServices {
  readonly jobs: SessionJobs;
  readonly leases: Leases;
  /** Tells whether this host offers a placement class. */
  offers(name: PlacementClass): boolean;
  /** Returns whether the operator's settings allow this host to run the spec. */
  serves(spec: ResolvedSessionSpec): Promise<boolean>;
  /** Returns whether this host opens shells now. It does not while it drains, or while its engine is down. */
  takesNew(): boolean;
  /** What each tenant uses on this host. */
  readonly uses: TenantUses;
  /** Returns the longest idle time of the tenant's sessions (ms), whatever their specs say. */
  mostIdleMs(tenant: string): number;
  /** Limits how many sandboxes of the host are opened at a time. */
  limitOpening<T>(policy: PolicyName, open: () => Promise<T>): Promise<T>;
  readonly pools: Pick<WarmPools, 'take' | 'tend'>;
  /** Tells that a command or a sandbox was killed because the memory of the host ran out. */
  onHostMemory(): void;
  readonly kept: KeptSandboxes;
  readonly hostEntries: RunningEntries;
  readonly hostAdmission: Admission;
  readonly approvals: HostApprovals;
}
