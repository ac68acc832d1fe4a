import { rulesLoad } from '../../test-support/rules-load.ts';

// node_modules/.bin/node --conditions=@shellfleet/source libs/policy/src/exec/decide.bench.ts
// Measures the processor time of a decision under 200 rules.

const ROUNDS = 9;
const DECISIONS = 5_000;

for (const { name, bytes, decideOnce } of rulesLoad()) {
  const microseconds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage();
    for (let left = DECISIONS; left > 0; left -= 1) decideOnce();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / DECISIONS;
  }).toSorted((one, other) => one - other);
  const [lowest, median, highest] = [microseconds[0], microseconds[ROUNDS >> 1], microseconds.at(-1)];
  const range = [lowest, highest].map((time) => time?.toFixed(1)).join('–');
  console.log(`${name.padEnd(24)} ${String(bytes).padStart(3)} bytes  ${median?.toFixed(1)} µs [${range}]`);
}
