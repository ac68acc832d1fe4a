import { readFleetFile } from '@shellfleet/client';
import { connectRedis, describeRedis } from '@shellfleet/mailbox';
import { ensureShellfleetError } from '@shellfleet/protocol';
import { findDocker } from '@shellfleet/setup';
import { isOurs, readFleetRecord, VERSION } from './fleet-record.ts';

/** One thing that a fleet on this machine needs: how it is, and, where something is missing, the one line that fixes it. */
export interface Finding {
  name: string;
  ok: boolean;
  detail: string;
  fix?: string;
}

const OLDEST_NODE = 24;

/** Looks, and changes nothing. */
export async function examine(env: NodeJS.ProcessEnv): Promise<Finding[]> {
  return [
    examineNode(),
    await examineEngine(env),
    await examineFleet(env),
    await examineRedis(env),
    await examineSealKey(env),
  ];
}

function examineNode(): Finding {
  const ok = Number(process.versions.node.split('.')[0]) >= OLDEST_NODE;
  const detail = `Node ${process.versions.node}`;
  return ok
    ? { name: 'node', ok, detail }
    : { name: 'node', ok, detail, fix: 'npm ci (brings the pinned Node), or install Node 24' };
}

async function examineEngine(env: NodeJS.ProcessEnv): Promise<Finding> {
  const engine = await findDocker(env);
  if (engine === undefined) {
    return {
      name: 'docker',
      ok: false,
      detail: 'no Docker engine answers',
      fix: 'npx shellfleet up (as root on Debian it installs one), or start Docker',
    };
  }
  return { name: 'docker', ok: true, detail: `engine ${engine.version} at ${engine.endpoint.dockerHost}` };
}

async function examineFleet(env: NodeJS.ProcessEnv): Promise<Finding> {
  const record = await readFleetRecord(env);
  if (record !== undefined && (await isOurs(record.pid, 'shellfleet-up'))) {
    const own = record.version === VERSION ? '' : ` (this is ${VERSION})`;
    return { name: 'fleet', ok: true, detail: `version ${record.version}${own}, up since ${record.startedAt}` };
  }
  if (env.SHELLFLEET_REDIS_URL)
    return { name: 'fleet', ok: true, detail: 'of this machine: none; SHELLFLEET_REDIS_URL names another' };
  return { name: 'fleet', ok: false, detail: 'none runs on this machine', fix: 'npx shellfleet up --detach' };
}

async function examineRedis(env: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'redis';
  const url = env.SHELLFLEET_REDIS_URL || (await readFleetFile(env).catch(() => undefined))?.redisUrl;
  if (url === undefined)
    return {
      name,
      ok: false,
      detail: 'not known where it is',
      fix: 'npx shellfleet up --detach, or set SHELLFLEET_REDIS_URL',
    };
  try {
    const { redis } = await connectRedis(url, 'producer', 'shellfleet-doctor');
    const persistent = /^aof_enabled:1/m.test(await redis.info('persistence'));
    redis.disconnect();
    const detail = `at ${describeRedis(url)}${persistent ? '' : ', without append-only file: a restart forgets what was accepted'}`;
    return { name, ok: persistent, detail, ...(persistent ? {} : { fix: 'CONFIG SET appendonly yes' }) };
  } catch (error) {
    const { message, hint } = ensureShellfleetError(error);
    return { name, ok: false, detail: message, fix: hint };
  }
}

async function examineSealKey(env: NodeJS.ProcessEnv): Promise<Finding> {
  const known = env.SHELLFLEET_SEAL_KEY || (await readFleetFile(env).catch(() => undefined))?.sealKeys[0];
  if (known) return { name: 'seal key', ok: true, detail: 'known; what goes through Redis can be opened' };
  return {
    name: 'seal key',
    ok: false,
    detail: 'not known, so nothing of a session can be opened',
    fix: 'set SHELLFLEET_SEAL_KEY to the fleet’s, or run npx shellfleet up',
  };
}
