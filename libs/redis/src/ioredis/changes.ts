import type { Cluster, Redis } from 'ioredis';
import { batchWrites } from './batch-writes.ts';
import { applyCallRules, applyClusterCallRules } from './call-rules.ts';
import { writeScriptCallsAtOnce } from './script-call.ts';

// Every change to ioredis beyond its options. All but the last are in this folder.
//
// * `batchWrites` replaces the write() of each socket, so that one turn of the event loop makes one write.
// * `applyCallRules` replaces sendCommand() of the connection, and reject() and setTimeout() of each call (CALL-1 to
//   CALL-5).
// * `writeScriptCallsAtOnce` replaces evalsha() of the connection, to write a script call in one pass.
// * `onInfo` wraps sendCommand() to read the reply to the INFO that ioredis sends itself.
// * `recoverFirst` wraps sendCommand() to fail other calls until a new connection has recovered.
// * The bundle of the command line creates the methods of commands faster (scripts/release/bundle-cli.ts).

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
