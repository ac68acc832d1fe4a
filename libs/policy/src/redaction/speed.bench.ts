import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pick, seededRandom } from '../../test-support/token-samples.ts';
import { compileRedaction } from './compile.ts';

// node_modules/.bin/node --conditions=@shellfleet/source libs/policy/src/redaction/speed.bench.ts DIRECTORY
// Measures the throughput of text with few findings. DIRECTORY has the logs that bench/collect-logs.sh has collected.

const ALNUM = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
const MOST_BYTES = 64 * 2 ** 20;
const ROUNDS = 5;

const directory = process.argv[2];
if (directory === undefined) throw new Error('say where the collected logs are');
const corpus = Buffer.concat(
  readdirSync(directory).map((name) => readFileSync(join(directory, name)).subarray(0, 4 * 2 ** 20)),
);
const text = corpus.subarray(0, MOST_BYTES);

const random = seededRandom(5);
const secrets = Object.fromEntries(
  Array.from({ length: 50 }, (_, index) => [
    `S${index}`,
    Array.from({ length: 24 }, () => pick(random, ALNUM)).join(''),
  ]),
);
const types = ['email', 'credit_card', 'ip', 'mac_address', 'url'];
const hashKey = Buffer.alloc(32);
const rulesOf = (...names: string[]) => names.map((type) => ({ type, strategy: 'redact' as const }));

const rows = {
  nothing: compileRedaction({ hashKey, tokens: false }),
  secrets: compileRedaction({ hashKey, tokens: false, secrets }),
  tokens: compileRedaction({ hashKey }),
  ...Object.fromEntries(
    types.map((type) => [type, compileRedaction({ hashKey, tokens: false, rules: rulesOf(type) })]),
  ),
  all: compileRedaction({ hashKey, secrets, rules: rulesOf(...types) }),
};

const speeds = new Map<string, number[]>(Object.keys(rows).map((name) => [name, []]));
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, redaction] of Object.entries(rows)) {
    const redactor = redaction.redactor();
    const before = process.cpuUsage();
    for (let at = 0; at < text.length; at += 65_536) redactor.push(text.subarray(at, at + 65_536));
    redactor.end();
    const { user, system } = process.cpuUsage(before);
    speeds.get(name)!.push(text.length / (user + system));
  }
}
console.log(
  `${(text.length / 1e6).toFixed(0)} MB in pieces of 64 KiB, MB per second of processor time: median [lowest–highest] of ${ROUNDS}`,
);
for (const [name, all] of speeds) {
  const sorted = all.toSorted((a, b) => a - b);
  const [lowest, median, highest] = [sorted[0]!, sorted[ROUNDS >> 1]!, sorted.at(-1)!].map((speed) => speed.toFixed(0));
  console.log(`${name.padEnd(12)} ${median} [${lowest}–${highest}]`);
}
