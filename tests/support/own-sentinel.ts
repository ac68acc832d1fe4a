import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, type RedisProcess, startRedisProcess } from './redis-process.ts';
import { until } from './until.ts';

const NAME = 'fleet-primary';
const SENTINELS = 3;
const DOWN_AFTER_MS = 1_000;

/** A primary with a replica and three sentinels, of the test's own, each in a container of one image. */
export interface OwnSentinels extends AsyncDisposable {
  url: string;
  primary: RedisProcess;
  replica: RedisProcess;
  sentinels: RedisProcess[];
}

export async function startOwnSentinels(image: string, ...settings: string[]): Promise<OwnSentinels> {
  const directory = await mkdtemp(join(tmpdir(), 'shellfleet-sentinels-'));
  const common = ['--save', '', '--repl-diskless-sync-delay', '0', ...settings];
  const primary = await startRedisProcess({ image, settings: common });
  const sentinel = async (index: number) => {
    const file = join(directory, `${index}.conf`);
    const lines = [
      `monitor ${NAME} 127.0.0.1 ${primary.port} 2`,
      `down-after-milliseconds ${NAME} ${DOWN_AFTER_MS}`,
      `failover-timeout ${NAME} 6000`,
    ];
    await writeFile(file, lines.map((line) => `sentinel ${line}\n`).join(''));
    const port = await freePort();
    return startRedisProcess({ image, directories: [directory], configFile: file, settings: ['--sentinel'], port });
  };
  const replica = await startRedisProcess({
    image,
    settings: [...common, '--replicaof', `127.0.0.1 ${primary.port}`],
  });
  // A sentinel asks its primary for replicas when it starts, and then every ten seconds.
  await until(
    () => primary.redis.info('replication'),
    (text) => text.includes('state=online'),
  );
  const sentinels = await Promise.all(Array.from({ length: SENTINELS }, (_, index) => sentinel(index)));
  // Only sentinels that know each other and the replica can agree on a failover.
  await until(
    () => Promise.all(sentinels.map(({ redis }) => redis.call('SENTINEL', 'MASTER', NAME) as Promise<string[]>)),
    (all) => all.every((fields) => field(fields, 'num-slaves') === '1' && field(fields, 'num-other-sentinels') === '2'),
  );
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${NAME}`,
    primary,
    replica,
    sentinels,
    async [Symbol.asyncDispose]() {
      await Promise.all([primary, replica, ...sentinels].map((server) => server[Symbol.asyncDispose]()));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

function field(fields: string[] | Record<string, string>, name: string): string | undefined {
  return Array.isArray(fields) ? fields[fields.indexOf(name) + 1] : fields[name];
}
