import { type FleetKeys, sessionJobId, sessionsQueue } from '@shellfleet/protocol';

// All that Shellfleet reads or writes of BullMQ's data beyond its public API. keys.test.ts checks the scripts for other
// names, and tests/integration/placement-bullmq.test.ts compares these with the installed BullMQ.

/** Names in the data of a queue, with what BullMQ keeps under each. */
export const BULLMQ_NAMES = {
  /** Keys of a queue, below `<prefix>:<queue>:`. */
  queue: {
    wait: 'list of the jobs without priority that wait; the next one is at its right end',
    prioritized: 'sorted set of the jobs with a priority that wait; the score is priority × 2^32 + a rising number',
    active: 'list of the jobs that hosts hold, the newest at its left end',
  },
  /** Keys of a job besides its hash, below `<prefix>:<queue>:<job>`. */
  job: {
    ':lock': 'string, expires: the holder of an active job; for a session its host, whose lease the lock is',
  },
  /** Fields of the hash `<prefix>:<queue>:<job>`. */
  fields: {
    name: 'name of the job',
    data: 'data of the job, JSON',
    timestamp: 'time at which the job was added (ms)',
    delay: '0: the job is not delayed',
    priority: 'priority, 0 for none',
    opts: 'options with which the job was added, JSON; the job is removed by them when it is completed',
    processedOn: 'time at which the job was handed out last (ms); absent before',
    pb: 'name of the worker that received the job',
    ats: 'how often the job was handed out',
  },
};

/** Codes of BullMQ's errors when a host completes or returns a job that it does not hold. */
export const NOT_HELD = { JobNotExist: -1, JobLockNotExist: -2, JobNotInState: -3, JobLockMismatch: -6 };

export const sessionJobLockKey = (
  fleet: FleetKeys,
  placementClass: string,
  { tenant, session }: { tenant: string; session: string },
) => `${fleet.sessionQueues}:${sessionsQueue(placementClass, tenant)}:${sessionJobId(tenant, session)}:lock`;
