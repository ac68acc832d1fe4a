export { acquire } from './bullmq/acquire.ts';
export { declareOwned } from './bullmq/declare-owned.ts';
export { BULLMQ_NAMES, NOT_HELD, sessionJobLockKey } from './bullmq/keys.ts';
export { listTenants } from './bullmq/list-tenants.ts';
export { renew } from './bullmq/renew.ts';
export { requeue } from './bullmq/requeue.ts';
export { endCall, type HeldCall, takeCall } from './bullmq/take-call.ts';
export { hashTenant, type Place, readDemand, type TenantDemand } from './demand.ts';
export type { ServeVerdict } from './fetcher.ts';
export {
  countsOf,
  type FleetDemand,
  type HostCounts,
  type ReadDemand,
  readFleetDemand,
  toClassName,
} from './fleet-demand.ts';
export { namesOfGreatest, OTHERS } from './greatest-names.ts';
export { readBeats, readLiveHosts } from './live-hosts.ts';
export { hostsFor, NO_LIVE_HOST, noHostReason, type Refusals } from './no-host-reason.ts';
export {
  type Abilities,
  isOffered,
  offeredClasses,
  type Placement,
  type PlacementClass,
  parseClass,
  parsePlacement,
  placementClass,
  toPlacement,
  toPlacementJson,
} from './placement.ts';
export { QueuedSessions, type SessionsLine } from './queued-sessions.ts';
export { differences, type NewSessionJob, newSessionJob, type SessionJob, type TenantSession } from './session-job.ts';
export { createSessionJobs, type SessionJobs } from './session-jobs.ts';
