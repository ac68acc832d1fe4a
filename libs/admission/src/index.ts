export { hostsFor, noHostReason } from './no-host-reason.ts';
export {
  offeredClasses,
  PLACEMENT_CLASSES,
  type Placement,
  type PlacementClass,
  placementClass,
  placementSchema,
  toPlacement,
} from './placement.ts';
export { differences, newSessionJob, type NewSessionJob, type SessionJob } from './session-job.ts';
export { createSessionJobs, type Granted, type SessionJobs } from './session-jobs.ts';
export { SessionsQueue } from './sessions-queue.ts';
