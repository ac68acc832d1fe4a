export { createSessionJobs, type SessionJob, type SessionJobs } from './session-jobs.ts';
export { SessionsQueue } from './sessions-queue.ts';
