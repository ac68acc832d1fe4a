import type { Session } from '@shellfleet/client';
import { p95, takeProcessor, timesWhile } from '../../support/flood-figures.ts';
import { type Spread, toSpread } from '../measure/spread.ts';
import type { ShellfleetRow } from '../rows/shellfleet.ts';

export interface FloodFigures {
  /**
   * p95 of a small command in ms, while `yes` in another session prints to /dev/null, and while it prints to its
   * output
   */
  besideMs: Spread;
  duringMs: Spread;
  /** throughput from the call to the result of the flood */
  megabytesPerSecond: Spread;
  /** bytes of one round */
  bytes: number;
}

export interface FloodAmounts {
  bytes: number;
  /** bytes of the flood with an attached reader, which runs once */
  attachedBytes: number;
  besideSeconds: number;
}

/**
 * Measures the latency in one session during a flood in another, and without it. `yes` uses a processor in both cases;
 * only its output differs.
 */
export async function measureFloods(
  shellfleet: ShellfleetRow,
  rounds: number,
  amounts: FloodAmounts,
): Promise<FloodFigures> {
  const { bytes, besideSeconds } = amounts;
  const [flooding, other] = [await shellfleet.openSession(), await shellfleet.openSession()];
  await flood(flooding, bytes); // warm-up: compiles the redactor's code and grows its buffers
  const [beside, during, speeds]: [number[], number[], number[]] = [[], [], []];
  for (let round = 0; round < rounds; round++) {
    beside.push(p95(await timesWhile(other, flooding.run(takeProcessor(besideSeconds)))));
    const from = performance.now();
    let tookMs = 0;
    const ended = flood(flooding, bytes).then(() => {
      tookMs = performance.now() - from;
    });
    during.push(p95(await timesWhile(other, ended)));
    await ended;
    speeds.push(bytes / 1_000 / tookMs);
  }
  await Promise.all([flooding.close(), other.close()]);
  const [besideMs, duringMs, megabytesPerSecond] = [toSpread(beside), toSpread(during), toSpread(speeds)];
  return { besideMs, duringMs, megabytesPerSecond, bytes };
}

async function flood(session: Session, bytes: number): Promise<void> {
  const { outcome, totals } = await session.run(`yes | head -c ${bytes}`, { timeoutMs: 120_000 });
  if (outcome !== 'success' || totals.stdoutBytes !== bytes)
    throw new Error(`a flood of ${bytes} bytes ended as ${outcome} with ${totals.stdoutBytes}`);
}
