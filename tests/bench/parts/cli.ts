import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { checkoutRoot } from '@shellfleet/setup';
import { stageCli } from '../../../scripts/release/pack-packages.ts';
import { percentile, type Spread, toSpread } from '../measure/spread.ts';
import type { Row } from '../rows/row.ts';
import type { ShellfleetRow } from '../rows/shellfleet.ts';

const run = promisify(execFile);

export interface CliFigures {
  /** milliseconds of the whole process `shellfleet exec SESSION -- true`, and of `docker exec CONTAINER sh -c true` */
  execMs: Spread;
  dockerExecMs: Spread;
  /** milliseconds of `node -e 0`, the least that any program in Node needs */
  nodeMs: Spread;
}

/**
 * Measures the command line as it is published (bundled), with Node's compile cache, in an open session. The programs
 * alternate; each round gives a median.
 */
export async function measureCli(
  shellfleet: ShellfleetRow,
  dockerExecCli: Row,
  rounds: number,
  calls: number,
): Promise<CliFigures> {
  const program = await stageCli(join(checkoutRoot, '.cache/bench-cli'));
  const session = await shellfleet.openSession();
  const inherited = Object.entries(process.env).filter(([name]) => !/^(SHELLFLEET|NODE)_/.test(name));
  const env = {
    ...Object.fromEntries(inherited),
    ...shellfleet.environment,
    SHELLFLEET_STATE_DIR: join(checkoutRoot, '.cache/bench-cli/state'),
    XDG_CACHE_HOME: join(checkoutRoot, '.cache/bench-cli/cache'), // compiled code
  };
  const programs = {
    execMs: () => run(process.execPath, [program, 'exec', session.id, '--', 'true'], { env }),
    dockerExecMs: () => dockerExecCli.one('true', 0),
    nodeMs: () => run(process.execPath, ['-e', '0'], { env }),
  };
  const times = { execMs: [] as number[], dockerExecMs: [] as number[], nodeMs: [] as number[] };
  const names = ['execMs', 'dockerExecMs', 'nodeMs'] as const;
  for (let turn = 0; turn < 3; turn++) for (const name of names) await programs[name](); // fills the compile cache
  for (let round = 0; round < rounds; round++) {
    const ofRound = { execMs: [] as number[], dockerExecMs: [] as number[], nodeMs: [] as number[] };
    for (let turn = 0; turn < calls; turn++) {
      for (const name of names) {
        const from = performance.now();
        await programs[name]();
        ofRound[name].push(performance.now() - from);
      }
    }
    for (const name of names) times[name].push(percentile(ofRound[name], 0.5));
  }
  await session.close();
  return { execMs: toSpread(times.execMs), dockerExecMs: toSpread(times.dockerExecMs), nodeMs: toSpread(times.nodeMs) };
}
