import { percentile, type Spread, toSpread } from '../measure/spread.ts';
import { createBashPipePeer, createExecaPeer } from '../peers/node-peers.ts';
import type { Peer, PeerName } from '../peers/peer.ts';
import { SCRIPTS, type Script } from '../rows/row.ts';

/** Figures of one peer, over all rounds. */
export interface PeerFigures {
  name: PeerName;
  /** milliseconds of one command at a time */
  idle: Record<Script, { p50: Spread; p99: Spread }>;
  commandsPerSecond: Spread;
}

/** Number of commands of a peer in a round: one at a time for each script, and in each session. */
export interface PeerAmounts {
  idle: Record<PeerName, number>;
  perSession: Record<PeerName, number>;
}

/** Measures the peers, which alternate within each round. */
export async function measurePeers(
  { idle, perSession }: PeerAmounts,
  rounds: number,
  sessions: number,
): Promise<PeerFigures[]> {
  await using cleanup = new AsyncDisposableStack();
  const runs: Run[] = [];
  for (const start of [createBashPipePeer, createExecaPeer]) {
    const peer = await start();
    cleanup.defer(() => peer.close());
    await peer.load(sessions, 1); // opens its sessions
    runs.push({ peer, idle: { true: [], 'echo hi': [] }, speeds: [] });
  }
  for (let round = 0; round < rounds; round++) {
    for (const { peer, idle: latencies, speeds } of runs) {
      for (const script of SCRIPTS) latencies[script].push(await peer.idle(script, idle[peer.name]));
      speeds.push(await peer.load(sessions, perSession[peer.name]));
    }
  }
  return runs.map(toFigures);
}

/** What one peer was measured to take: latencies of each round, and speeds. */
interface Run {
  peer: Peer;
  idle: Record<Script, number[][]>;
  speeds: number[];
}

function toFigures({ peer: { name }, idle, speeds }: Run): PeerFigures {
  const spreads = (script: Script) => {
    const share = (of: number) => toSpread(idle[script].map((latencies) => percentile(latencies, of)));
    return { p50: share(0.5), p99: share(0.99) };
  };
  return {
    name,
    idle: { true: spreads('true'), 'echo hi': spreads('echo hi') },
    commandsPerSecond: toSpread(speeds),
  };
}
