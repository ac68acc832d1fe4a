import { percentile, type Spread, toSpread } from '../measure/spread.ts';
import { createBashPipePeer, createExecaPeer } from '../peers/node-peers.ts';
import { type Peer, type PeerName, PYTHON_PEERS } from '../peers/peer.ts';
import { installPythonPeer, startPythonPeer } from '../peers/python-peer.ts';
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

/** Measures the peers that can be started. They alternate within each round. */
export async function measurePeers(
  { idle, perSession }: PeerAmounts,
  rounds: number,
  sessions: number,
  install: boolean,
  report: (line: string) => void,
): Promise<PeerFigures[]> {
  await using cleanup = new AsyncDisposableStack();
  const runs: Run[] = [];
  const leaveOut = (name: PeerName, error: unknown) => report(`Not measured: ${name}, because ${firstLine(error)}`);
  for (const { name, start } of toStart(install)) {
    try {
      const peer = await start();
      cleanup.defer(() => peer.close());
      await peer.load(sessions, 1); // opens its sessions
      runs.push({ peer, idle: { true: [], 'echo hi': [] }, speeds: [] });
    } catch (error) {
      leaveOut(name, error);
    }
  }
  for (let round = 0; round < rounds; round++) {
    for (const run of [...runs]) {
      const { peer, speeds } = run;
      try {
        for (const script of SCRIPTS) run.idle[script].push(await peer.idle(script, idle[peer.name]));
        speeds.push(await peer.load(sessions, perSession[peer.name]));
      } catch (error) {
        leaveOut(peer.name, error);
        runs.splice(runs.indexOf(run), 1);
      }
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

function toStart(install: boolean): { name: PeerName; start: () => Promise<Peer> }[] {
  const ofPython = PYTHON_PEERS.map((name) => ({
    name,
    start: async () => {
      if (install) await installPythonPeer(name);
      return startPythonPeer(name);
    },
  }));
  return [
    { name: 'bash-pipe', start: createBashPipePeer },
    { name: 'execa', start: async () => createExecaPeer() },
    ...ofPython,
  ];
}

function firstLine(error: unknown): string {
  const { message, stderr } = error as { message: string; stderr?: string };
  const reason = stderr?.split('\n').find((line) => line.startsWith('ERROR')) ?? message;
  return reason.trim().split('\n')[0]!.slice(0, 200);
}
