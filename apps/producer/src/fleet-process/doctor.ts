import { readFleetFile } from '@shellfleet/client';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { connectRedis, describeRedis } from '@shellfleet/redis';
import { diagnose, type MachinePart } from '@shellfleet/setup';
import { VERSION } from '../program-file.ts';
import { examineOtherFleets } from './examine-other-fleets.ts';
import { examinePolicies } from './examine-policies.ts';
import { isAnyWorkerRunning, isSupervisorRunning, readFleetRecord } from './fleet-record.ts';

const API_WITHIN_MS = 3_000;
const API_FIX = 'read api.log in the state directory; shellfleet up --replace starts everything anew';

/** Examines this machine and the fleet without changing anything. */
export async function examine(env: NodeJS.ProcessEnv): Promise<MachinePart[]> {
  const file = await readFleetFile(env).catch(() => undefined);
  return [
    ...(await diagnose(env)),
    ...(await examinePolicies(env)),
    await examineFleet(env),
    ...(await examineApi(file?.api?.url)),
    ...(await examineOtherFleets(env)),
    await examineRedis(env.SHELLFLEET_REDIS_URL || file?.redisUrl),
    examineSealKey(env.SHELLFLEET_SEAL_KEY || file?.sealKeys[0]),
  ];
}

async function examineFleet(env: NodeJS.ProcessEnv): Promise<MachinePart> {
  const name = 'fleet';
  const record = await readFleetRecord(env);
  if (record !== undefined && isSupervisorRunning(record)) {
    const own = record.version === VERSION ? '' : ` (this is ${VERSION})`;
    return { name, state: 'present', detail: `version ${record.version}${own}, up since ${record.startedAt}` };
  }
  // Workers serve without a supervisor.
  if (record !== undefined && isAnyWorkerRunning(record)) {
    const detail = `version ${record.version} serves, but its supervisor is gone: nothing starts a worker again that ends`;
    return { name, state: 'present', detail, fix: 'npx shellfleet up --detach' };
  }
  if (env.SHELLFLEET_REDIS_URL) {
    return { name, state: 'present', detail: 'no fleet of this machine; SHELLFLEET_REDIS_URL names another' };
  }
  return { name, state: 'missing', detail: 'no fleet runs on this machine', fix: 'npx shellfleet up --detach' };
}

/** Examines the HTTP API of the connection file. It is part of every fleet of `up`. */
async function examineApi(url: string | undefined): Promise<MachinePart[]> {
  if (url === undefined) return [];
  const name = 'http api';
  try {
    const { ok, status } = await fetch(new URL('/healthz', url), { signal: AbortSignal.timeout(API_WITHIN_MS) });
    if (ok) return [{ name, state: 'present', detail: `at ${url}` }];
    return [{ name, state: 'missing', detail: `at ${url}, which answers with ${status}`, fix: API_FIX }];
  } catch (error) {
    const { message, cause } = error as Error & { cause?: { code?: string } };
    return [
      { name, state: 'missing', detail: `at ${url}, which does not answer (${cause?.code ?? message})`, fix: API_FIX },
    ];
  }
}

async function examineRedis(url: string | undefined): Promise<MachinePart> {
  const name = 'fleet’s redis';
  if (url === undefined) {
    const fix = 'npx shellfleet up --detach, or set SHELLFLEET_REDIS_URL';
    return { name, state: 'missing', detail: 'its address is not known', fix };
  }
  try {
    const { redis } = await connectRedis(url, 'producer', 'shellfleet-doctor');
    const persistent = /^aof_enabled:1/m.test(await redis.info('persistence'));
    redis.disconnect();
    const detail = `at ${describeRedis(url)}`;
    if (persistent) return { name, state: 'present', detail };
    const lacks = `${detail}, without an append-only file: a restart loses accepted commands`;
    return { name, state: 'missing', detail: lacks, fix: 'CONFIG SET appendonly yes, then CONFIG REWRITE' };
  } catch (error) {
    const { message, hint } = ensureShellfleetError(error);
    return { name, state: 'missing', detail: message, fix: hint };
  }
}

function examineSealKey(key: string | undefined): MachinePart {
  const name = 'seal key';
  if (key) return { name, state: 'present', detail: 'known, so sealed values in Redis can be opened' };
  const fix = 'set SHELLFLEET_SEAL_KEY to the key of the fleet, or run npx shellfleet up --detach';
  return { name, state: 'missing', detail: 'not known, so sealed values in Redis cannot be opened', fix };
}
