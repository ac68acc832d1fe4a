import { parseSessionJobId, sessionJobId, sessionsQueue, toCanonicalJson } from '@shellfleet/protocol';
import { z } from 'zod';
import { type Placement, type PlacementClass, placementClass, placementSchema } from './placement.ts';

export interface TenantSession {
  tenant: string;
  session: string;
}

/** The data of a session's job, in clear. The job was added for this generation of the session. */
const jobDataSchema = placementSchema.extend({ generation: z.string().min(1) });
type SessionJobData = z.infer<typeof jobDataSchema>;

/** A job as a queue holds it. `data` is absent when it is not valid, because another program wrote it. */
export interface SessionJob extends TenantSession {
  placementClass: PlacementClass;
  data?: SessionJobData;
}

export interface NewSessionJob extends TenantSession {
  data: SessionJobData;
}

export function newSessionJob(
  { tenant, session }: TenantSession,
  generation: string,
  placement: Placement,
): NewSessionJob {
  return { tenant, session, data: { ...placement, generation } };
}

export function classOf(job: SessionJob | NewSessionJob): PlacementClass {
  return 'placementClass' in job ? job.placementClass : placementClass(job.data);
}

/** Returns the name of the queue that has the session's job. */
export function queueOf(job: SessionJob | NewSessionJob): string {
  return sessionsQueue(classOf(job), job.tenant);
}

export function jobIdOf({ tenant, session }: TenantSession): string {
  return sessionJobId(tenant, session);
}

/** Reads a job. Returns undefined when its id names no session. */
export function parseSessionJob(
  job: { id?: string | undefined; data: unknown },
  placementClass: PlacementClass,
): SessionJob | undefined {
  const ref = parseSessionJobId(job.id ?? '');
  if (ref === undefined) return undefined;
  const parsed = jobDataSchema.safeParse(job.data);
  return { ...ref, placementClass, ...(parsed.success ? { data: parsed.data } : {}) };
}

/**
 * Returns what differs from the placement of the sealed spec: `queue`, `data` when it is not valid, or fields of it. Of
 * a job of another generation, only the queue is compared.
 */
export function differences(job: SessionJob, generation: string, wanted: Placement): string[] {
  if (job.data === undefined) return ['data'];
  const { generation: added, ...placement } = job.data;
  const wrongQueue = job.placementClass === placementClass(wanted) ? [] : ['queue'];
  if (added !== generation) return wrongQueue;
  const fields = placementSchema
    .keyof()
    .options.filter((field) => toCanonicalJson(placement[field]) !== toCanonicalJson(wanted[field]));
  return [...wrongQueue, ...fields];
}
