import type { Row, Script } from '../rows/row.ts';

/** What people use instead of a fleet, with a shell or a process on this machine. */
export interface Peer {
  name: PeerName;
  /** Runs one command after the other, and returns the milliseconds of each. */
  idle(script: Script, samples: number): Promise<number[]>;
  /** Runs `echo hi` this often in each of so many sessions at once. Returns commands per second. */
  load(sessions: number, perSession: number): Promise<number>;
  close(): Promise<void>;
}

export type PeerName = 'bash-pipe' | 'execa';

/** Returns a peer of which this process measures the commands. */
export function toPeer(name: PeerName, { one, many, close }: Omit<Row, 'name'>): Peer {
  return {
    name,
    idle: (script, samples) => timeEach(samples, (turn) => one(script, turn)),
    async load(sessions, perSession) {
      const from = performance.now();
      await many(sessions, perSession);
      return ((sessions * perSession) / (performance.now() - from)) * 1_000;
    },
    close,
  };
}

async function timeEach(samples: number, run: (turn: number) => Promise<void>): Promise<number[]> {
  const latencies: number[] = [];
  for (let turn = 0; turn < samples; turn++) {
    const from = performance.now();
    await run(turn);
    latencies.push(performance.now() - from);
  }
  return latencies;
}
