import type { Cluster, Redis } from 'ioredis';
import { batchWrites } from './batch-writes.ts';
import { applyCallRules, applyClusterCallRules } from './call-rules.ts';
import { writeScriptCallsAtOnce } from './script-call.ts';

// Every change to ioredis beyond its options. The bundle of the command line makes one more
// (scripts/release/bundle-cli.ts): it creates the methods of commands faster.

/** Changes a connection to one Redis. Call this before its first use. */
export function changeConnection(redis: Redis): void {
  batchWrites(redis);
  applyCallRules(redis);
  writeScriptCallsAtOnce(redis);
}

/** Changes a Cluster and each node connection that it opens. Call this before its first use. */
export function changeCluster(cluster: Cluster): void {
  cluster.on('+node', batchWrites);
  applyClusterCallRules(cluster);
  writeScriptCallsAtOnce(cluster as unknown as Redis);
}
