import type { Cluster, Redis } from 'ioredis';
import { batchWrites } from './batch-writes.ts';
import { applyCallRules, applyClusterCallRules } from './call-rules.ts';
import { writeScriptCallsAtOnce } from './script-call.ts';

// Everything that is changed about ioredis beyond its options. The changes are in this folder, but for the last one.
//
// * `batchWrites` replaces the write() of each socket: what is sent in one turn of the event loop is one write.
// * `applyCallRules` replaces sendCommand() of the connection, and of each call reject() and setTimeout(): a call has one
//   deadline, is never sent late, and its error does not carry its arguments.
// * `writeScriptCallsAtOnce` replaces evalsha() of the connection: a call of a script is written in one pass.
// * `onInfo` wraps sendCommand() once more: it reads the reply to the INFO that ioredis asks for itself.
// * `recoverFirst` wraps sendCommand() once more: other calls fail until the recovery of a new connection has run.
// * The bundle of the command line creates the methods of commands faster (scripts/release/bundle-cli.ts).

/** Changes a connection to one Redis, before its first use. */
export function changeConnection(redis: Redis): void {
  batchWrites(redis);
  applyCallRules(redis);
  writeScriptCallsAtOnce(redis);
}

/** Changes a Cluster, and the connection to each node that it opens, before its first use. */
export function changeCluster(cluster: Cluster): void {
  cluster.on('+node', batchWrites);
  applyClusterCallRules(cluster);
  writeScriptCallsAtOnce(cluster as unknown as Redis);
}
