import { FLOODED_SECRET, HOSTILE_FLOODS } from '../../test-support/hostile-floods.ts';
import { compileRedaction } from './compile.ts';

// node_modules/.bin/node --conditions=@shellfleet/source libs/policy/src/redaction/hostile.bench.ts [NAME]
// Measures the throughput of each hostile flood, or of those whose name contains NAME, with all built-in rules.

const BYTES = 4 << 20;
const FRAME_BYTES = 64 << 10;
const ROUNDS = 3;
const TYPES = ['email', 'credit_card', 'ip', 'mac_address', 'url'];

const redaction = compileRedaction({
  rules: TYPES.map((type) => ({ type, strategy: 'redact' })),
  secrets: { TOKEN: FLOODED_SECRET },
  hashKey: Buffer.alloc(32),
});
const wanted = process.argv[2] ?? '';
const floods = Object.entries(HOSTILE_FLOODS).filter(([name]) => name.includes(wanted));

console.log(
  `${BYTES >> 20} MiB in pieces of 64 KiB, MB in a second of processor time: median [lowest–highest] of ${ROUNDS}`,
);
for (const [name, text] of floods) {
  const input = Buffer.alloc(BYTES, Buffer.from(text, 'latin1'));
  rateOf(input); // compiles what is measured
  const rates = Array.from({ length: ROUNDS }, () => rateOf(input)).toSorted((a, b) => a - b);
  const [lowest, median, highest] = [rates[0], rates[ROUNDS >> 1], rates.at(-1)].map((rate) => rate?.toFixed(1));
  console.log(`${name}: ${median} MB/s [${lowest}–${highest}]`);
}

function rateOf(input: Buffer): number {
  const redactor = redaction.redactor();
  const before = process.cpuUsage();
  for (let at = 0; at < input.length; at += FRAME_BYTES) redactor.push(input.subarray(at, at + FRAME_BYTES));
  redactor.end();
  const { user, system } = process.cpuUsage(before);
  return input.length / (user + system);
}
