import { open } from 'node:fs/promises';
import { arch, platform, release } from 'node:os';
import { join } from 'node:path';
import type { Fleet } from '@shellfleet/client';
import { ensureShellfleetError, PROTOCOL_VERSION } from '@shellfleet/protocol';
import { type Connected, connectRedis } from '@shellfleet/redis';
import { stateDirectory } from '@shellfleet/setup';
import { examine } from '../fleet-process/doctor.ts';
import { VERSION } from '../program-file.ts';
import { countKeys } from './count-keys.ts';
import { describeVariables, readHostConfiguration } from './describe-settings.ts';

const MOST_LOG_BYTES = 2_097_152;
const MOST_SESSIONS = 10_000;
/** Most bytes of the logs of all hosts. Each host gets the same share. */
const MOST_HOST_LOG_BYTES = 16_777_216;

export interface BundleSources {
  env: NodeJS.ProcessEnv;
  redisUrl: string | undefined;
  namespace: string;
  /** Calls `use` with the fleet. Rejects if it cannot be reached. */
  withFleet(use: (fleet: Fleet) => Promise<void>): Promise<void>;
}

/** Collects the files of a bundle by name, unredacted. What cannot be read has the reason in its file. */
export async function collect({ env, redisUrl, namespace, withFleet }: BundleSources): Promise<Map<string, string>> {
  const files = new Map<string, string>();
  const add = async (name: string, read: () => Promise<unknown>) => {
    const content = await read().catch(
      (error: unknown) => `This could not be read: ${ensureShellfleetError(error).message}`,
    );
    files.set(name, typeof content === 'string' ? content : `${JSON.stringify(content, undefined, 2)}\n`);
  };
  await add('versions.json', async () => ({
    ...{ at: new Date().toISOString(), shellfleet: VERSION, protocol: PROTOCOL_VERSION, node: process.version },
    ...{ platform: platform(), release: release(), arch: arch() },
  }));
  await add('variables.json', async () => describeVariables(env));
  await add('host-configuration.json', () => readHostConfiguration(env));
  await add('doctor.json', () => examine(env));
  for (const log of ['workers.log', 'api.log']) await add(log, () => readEnd(join(stateDirectory(env), log)));
  const ofFleet = (name: string, read: (fleet: Fleet) => Promise<unknown>) =>
    add(name, async () => {
      let content: unknown;
      await withFleet(async (fleet) => {
        content = await read(fleet);
      });
      return content;
    });
  await ofFleet('fleet-configuration.json', async (fleet) => (await fleet.configuration()) ?? 'None was applied.\n');
  await ofFleet('hosts.json', (fleet) => fleet.hosts());
  await withFleet((fleet) => addHostLogs(fleet, add)).catch(() => {
    // hosts.json has the reason.
  });
  await ofFleet('load.json', (fleet) => fleet.load());
  await ofFleet('queue.json', readQueue);
  await add('redis-info.txt', () => withRedis(redisUrl, (redis) => redis.info('everything')));
  await add('keys.json', () => withRedis(redisUrl, (redis) => countKeys(redis, namespace)));
  return files;
}

/** Adds the last lines of the log of each host that replies. The others have the reason in their file. */
async function addHostLogs(
  fleet: Fleet,
  add: (name: string, read: () => Promise<string>) => Promise<void>,
): Promise<void> {
  const hosts = await fleet.hosts();
  const share = Math.floor(MOST_HOST_LOG_BYTES / hosts.length);
  await Promise.all(hosts.map(({ id }) => add(`log-of-${id}.jsonl`, () => readHostLog(fleet, id, share))));
}

/** Reads the end of the log of a host, at most so many bytes in whole lines. */
async function readHostLog(fleet: Fleet, host: string, mostBytes: number): Promise<string> {
  const lines: string[] = [];
  let bytes = 0;
  for await (const { text } of fleet.hostLog(host)) {
    lines.push(`${text}\n`);
    bytes += Buffer.byteLength(text) + 1;
    while (bytes > mostBytes) bytes -= Buffer.byteLength(lines.shift() ?? '');
  }
  return lines.join('');
}

async function readQueue(fleet: Fleet): Promise<unknown> {
  const waiting: unknown[] = [];
  for await (const info of fleet.sessions({ allTenants: true })) {
    if (info.queuedCommands > 0) waiting.push(info);
    if (waiting.length === MOST_SESSIONS) break;
  }
  return waiting;
}

async function withRedis<T>(
  url: string | undefined,
  use: (redis: Connected['redis']) => Promise<T>,
): Promise<T | string> {
  if (url === undefined) return 'The address of Redis is not known.\n';
  const { redis } = await connectRedis(url, 'producer', 'shellfleet-support-bundle');
  return use(redis).finally(() => redis.disconnect());
}

/** Reads the end of a file from the begin of a line on. */
async function readEnd(path: string): Promise<string> {
  await using file = await open(path);
  const { size } = await file.stat();
  const from = Math.max(0, size - MOST_LOG_BYTES);
  const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from);
  const text = buffer.subarray(0, bytesRead).toString();
  return from === 0 ? text : text.slice(text.indexOf('\n') + 1);
}
