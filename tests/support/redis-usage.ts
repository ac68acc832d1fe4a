import type { Redis } from 'ioredis';

/** What the nodes of a Redis have used since their start, altogether. */
export interface RedisUsage {
  /** processor time (ms), user and system, of each node */
  cpuMs: number[];
  /** commands, those in scripts included */
  calls: number;
  /** memory, without the buffers of clients */
  memoryBytes: number;
  connections: number;
}

export async function readRedisUsage(nodes: readonly Redis[]): Promise<RedisUsage> {
  const infos = await Promise.all(
    nodes.map(async (node) => {
      const texts = await Promise.all(
        ['cpu', 'commandstats', 'memory', 'clients'].map((section) => node.info(section)),
      );
      return texts.join('\n');
    }),
  );
  const read = (info: string, name: string) => Number(new RegExp(`^${name}:([\\d.]+)`, 'm').exec(info)?.[1]);
  const sum = (of: (info: string) => number) => infos.reduce((total, info) => total + of(info), 0);
  return {
    cpuMs: infos.map((info) => 1_000 * (read(info, 'used_cpu_user') + read(info, 'used_cpu_sys'))),
    calls: sum((info) => [...info.matchAll(/:calls=(\d+)/g)].reduce((total, [, calls]) => total + Number(calls), 0)),
    memoryBytes: sum((info) => read(info, 'used_memory') - read(info, 'mem_clients_normal')),
    connections: sum((info) => read(info, 'connected_clients')),
  };
}

/** Returns what the nodes use during an action, and how long the action takes (ms). */
export async function usageDuring(
  nodes: readonly Redis[],
  action: () => Promise<unknown>,
): Promise<{ cpuMs: number[]; calls: number; tookMs: number }> {
  const before = await readRedisUsage(nodes);
  const from = performance.now();
  await action();
  const tookMs = performance.now() - from;
  const after = await readRedisUsage(nodes);
  return {
    cpuMs: after.cpuMs.map((ms, index) => ms - (before.cpuMs[index] ?? 0)),
    calls: after.calls - before.calls,
    tookMs,
  };
}
