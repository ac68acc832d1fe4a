import { runTrials } from '../../test-support/planted-trial.ts';

// node_modules/.bin/node --conditions=@shellfleet/source libs/policy/src/redaction/leaks.bench.ts [TRIALS] [SEED]
// Runs more trials of leaks.test.ts.

const [trials = '1000000', seed = '2'] = process.argv.slice(2);
const startedAt = performance.now();
const { failed, ...counts } = runTrials(Number(trials), Number(seed));
console.log({ ...counts, seconds: Math.round((performance.now() - startedAt) / 1000) });
for (const text of failed) console.log(text);
process.exitCode = counts.leaks + counts.differences > 0 ? 1 : 0;
