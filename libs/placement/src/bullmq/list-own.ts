import { type FleetKeys, parseSessionsQueue, tryJson } from '@shellfleet/protocol';
import { asArray, asString, runScript } from '@shellfleet/redis';
import type { Redis } from 'ioredis';
import { definePlacementScript } from '../define-script.ts';
import { parseSessionJob, type SessionJob } from '../session-job.ts';

const script = definePlacementScript('list-own');

const FIELDS = 3;

/** Lists the sessions whose lock names this host. Leaves out jobs whose ids name no session. */
export async function listOwn(redis: Redis, fleet: FleetKeys, host: string): Promise<SessionJob[]> {
  const reply = asArray(await runScript(redis, script, [fleet.queues], [fleet.sessionQueues, host]), script.name);
  const own: SessionJob[] = [];
  for (let at = 0; at < reply.length; at += FIELDS) {
    const [queue = '', id = '', data = ''] = reply.slice(at, at + FIELDS).map(asString);
    const placementClass = parseSessionsQueue(queue)?.placementClass;
    const job = placementClass === undefined ? undefined : parseSessionJob({ id, data: tryJson(data) }, placementClass);
    if (job !== undefined) own.push(job);
  }
  return own;
}
