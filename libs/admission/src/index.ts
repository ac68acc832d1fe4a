export { hostsFor, noHostReason } from './no-host-reason.ts';
export {
  offeredClasses,
  PLACEMENT_CLASSES,
  type Placement,
  type PlacementClass,
  parsePlacement,
  placementClass,
  toPlacement,
} from './placement.ts';
export { differences, type NewSessionJob, newSessionJob, type SessionJob, type SessionRef } from './session-job.ts';
export { createSessionJobs, type SessionJobs } from './session-jobs.ts';
export { SessionsQueue } from './sessions-queue.ts';
