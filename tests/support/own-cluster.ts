import { freePort, type RedisProcess, startRedisProcess } from './redis-process.ts';
import { until } from './until.ts';

const SLOTS = 16_384;

/** A Redis Cluster of the test's own: primaries without replicas, each with an equal share of the slots. */
export interface OwnCluster extends AsyncDisposable {
  url: string;
  nodes: RedisProcess[];
  /** Returns the node that holds the slot of this key. */
  nodeOf(key: string): Promise<RedisProcess>;
}

/** Settings of every node. While a node is down, the others still serve their own slots. */
const SETTINGS = ['--save', '', '--cluster-enabled', 'yes', '--cluster-node-timeout', '2000'];
const PARTIAL = ['--cluster-require-full-coverage', 'no', '--cluster-config-file', 'nodes.conf'];

export async function startOwnCluster(count = 3, settings: readonly string[] = []): Promise<OwnCluster> {
  const started = await Promise.all(
    Array.from({ length: count }, async () => {
      const busPort = await freePort();
      const bus = ['--cluster-port', String(busPort)];
      return { busPort, node: await startRedisProcess({ settings: [...SETTINGS, ...PARTIAL, ...bus, ...settings] }) };
    }),
  );
  const nodes = started.map(({ node }) => node);
  const [first] = nodes;
  if (first === undefined) throw new Error('a Cluster has a node');
  await Promise.all(
    nodes.map(async ({ redis }, index) => {
      await redis.call('CLUSTER', 'SET-CONFIG-EPOCH', index + 1);
      const [from, to] = [index, index + 1].map((share) => Math.floor((share * SLOTS) / count));
      await redis.call('CLUSTER', 'ADDSLOTSRANGE', from ?? 0, (to ?? 0) - 1);
    }),
  );
  for (const { node, busPort } of started.slice(1))
    await first.redis.call('CLUSTER', 'MEET', '127.0.0.1', node.port, busPort);
  await until(
    () => Promise.all(nodes.map(({ redis }) => redis.call('CLUSTER', 'INFO') as Promise<string>)),
    (infos) =>
      infos.every((info) => info.includes('cluster_state:ok') && info.includes(`cluster_slots_assigned:${SLOTS}`)),
  );
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    nodes,
    async nodeOf(key) {
      const slot = (await first.redis.call('CLUSTER', 'KEYSLOT', key)) as number;
      return nodes[Math.floor((slot * count + count - 1) / SLOTS)] ?? first;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
    },
  };
}
