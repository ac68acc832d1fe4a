import { Redis } from 'ioredis';
import { readByMany } from '../support/api/read-by-many.ts';
import { startApiStage } from './api/start-api-stage.ts';

// `npm run api-readers`: many readers follow the output of one command on one server. One of them reads nothing, and
// every third leaves and resumes. The readers are in this process. `READERS`, `MEGABYTES` and `ROUNDS` of the
// environment change the numbers.

const READERS = Number(process.env.READERS ?? 1_000);
const MEGABYTES = Number(process.env.MEGABYTES ?? 4);
const ROUNDS = Number(process.env.ROUNDS ?? 3);
const PIECE = 64 * 2 ** 10;
const MIB = 2 ** 20;
const SCRIPT = `read line; for i in $(seq ${(MEGABYTES * MIB) / PIECE}); do head -c ${(PIECE / 4) * 3} /dev/urandom | base64 -w 0; done`;

await using stage = await startApiStage();
const { fleet, api, caller } = stage;
const redis = new Redis(stage.redisUrl);
const session = await fleet.session('read', { output: { streamBytes: 2 * MEGABYTES * MIB } });
await session.run('true');
/** Connections of the client in this process. */
const OWN_CONNECTIONS = 2;

for (let round = 0; round < ROUNDS; round++) {
  const command = await session.submit(SCRIPT, { stdin: { open: true } });
  const begin = async () => {
    await command.write('go\n');
    await command.closeStdin();
  };
  const sent = await sentByRedis();
  const trial = { ...{ caller, pid: api.pid, commandId: command.id, begin }, readers: READERS, leaveAfter: 5 };
  const { digests, bytes, tookMs, otherMs, resident } = await readByMany(trial);
  if (digests.size !== 1) throw new Error(`${digests.size} readers have received different bytes`);
  const mib = (value: number) => (value / MIB).toFixed(0);
  console.log(
    `${READERS} readers got the same ${mib(bytes / READERS)} MiB, ${mib(bytes)} MiB altogether, in ${(tookMs / 1_000).toFixed(1)} s (${mib((bytes * 1_000) / tookMs)} MiB/s); other requests p95: ${otherMs.toFixed(0)} ms; Redis sent ${mib((await sentByRedis()) - sent)} MiB; server ${mib(resident.open)} MiB with all streams open, at most ${mib(resident.most)} MiB; connections ${(await connections()) - OWN_CONNECTIONS}`,
  );
}
await session.close();
redis.disconnect();

async function sentByRedis(): Promise<number> {
  return Number(/total_net_output_bytes:(\d+)/.exec(await redis.info('stats'))?.[1]);
}

async function connections(): Promise<number> {
  const list = (await redis.client('LIST')) as string;
  return list.split('\n').filter((line) => /name=shellfleet-(producer|feeds|events)/.test(line)).length;
}
