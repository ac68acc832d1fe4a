import { parseArgs } from 'node:util';
import { ensureMachine, ensureMachineForTests, stopDocker } from '@shellfleet/setup';
import { runTrial } from './run-trial.ts';
import { trialShells } from './trial-shells.ts';

// `npm run rules-trial -- [--count 100000] [--seed 1]`: generated scripts that the rules allow, in real shells. The exit code is 1 when one of
// them started a program that the rules do not allow.

async function main(count: number, seed: number): Promise<number> {
  const machine = await ensureMachine(process.env, console.error);
  try {
    const images = await ensureMachineForTests(machine, process.env, console.error);
    const { wronglyAllowed, ...totals } = await runTrial({
      dockerHost: machine.engine.endpoint.dockerHost,
      shells: trialShells(machine.sessionImage, images),
      seed,
      count,
      report: console.error,
    });
    for (const found of wronglyAllowed) console.log(JSON.stringify(found));
    console.log(JSON.stringify({ seed, ...totals, wronglyAllowed: wronglyAllowed.length }));
    return wronglyAllowed.length === 0 ? 0 : 1;
  } finally {
    if (machine.engine.startedHere) await stopDocker(process.env);
  }
}

const { values } = parseArgs({
  options: { count: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
});
process.exitCode = await main(Number(values.count), Number(values.seed));
