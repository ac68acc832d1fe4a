import { parseArgs } from 'node:util';
import { ensureMachine, ensureMachineForTests, stopDocker } from '@shellfleet/setup';
import { runTrial } from './run-trial.ts';
import { runSafeTrial } from './safe-programs/run-safe-trial.ts';
import { trialShells } from './trial-shells.ts';

// `npm run rules-trial -- [--count 100000] [--safe-count 20000] [--seed 1]`: runs generated scripts that the rules
// allow in real shells, and generated commands that are called safe as real programs. The exit code is 1 when a script
// started a program that the rules do not allow, or when a safe program wrote or started something.

async function main(count: number, safeCount: number, seed: number): Promise<number> {
  const machine = await ensureMachine(process.env, console.error);
  try {
    const images = await ensureMachineForTests(machine, process.env, console.error);
    const { dockerHost } = machine.engine.endpoint;
    const shells = trialShells(machine.sessionImage, images);
    const { wronglyAllowed, ...scripts } = await runTrial({ dockerHost, shells, seed, count, report: console.error });
    const programImages = [machine.sessionImage, images.busybox];
    const safe = { dockerHost, images: programImages, seed, count: safeCount, report: console.error };
    const { wronglyClaimed, programs, ...commands } = await runSafeTrial(safe);
    for (const found of [...wronglyAllowed, ...wronglyClaimed]) console.log(JSON.stringify(found));
    console.log(JSON.stringify({ seed, scripts: { ...scripts, wronglyAllowed: wronglyAllowed.length } }));
    console.log(
      JSON.stringify({ commands: { ...commands, programs: programs.length, wronglyClaimed: wronglyClaimed.length } }),
    );
    return wronglyAllowed.length + wronglyClaimed.length === 0 ? 0 : 1;
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
}

const { values } = parseArgs({
  options: {
    count: { type: 'string', default: '100000' },
    'safe-count': { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
  },
});
process.exitCode = await main(Number(values.count), Number(values['safe-count']), Number(values.seed));
