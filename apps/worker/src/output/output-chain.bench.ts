import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { compileRedaction } from '@shellfleet/policy';
import { CleanOutput } from './clean-output.ts';

// Throughput of a command's whole chain on one core (decode, redact, count, cut, release), in frames of 64 KiB as a
// worker receives them. It measures processor time, so that other load on the machine counts less. Run it with
// node_modules/.bin/node --conditions=@shellfleet/source apps/worker/src/output/output-chain.bench.ts [NAME]
// It runs every input with every set of rules, or those whose name contains NAME.

const BYTES = 64 << 20;
const FRAME_BYTES = 64 << 10;
const ROUNDS = 5;
const TYPES = ['email', 'credit_card', 'ip', 'mac_address', 'url'];

const inputs: Record<string, Buffer> = {
  yes: repeat(Buffer.from('y\n')),
  numbers: Buffer.from(spawnSync('seq', ['1', '8500000'], { maxBuffer: 2 * BYTES }).stdout).subarray(0, BYTES),
  'build logs': repeat(
    readFileSync(new URL('../../../../libs/policy/src/redaction/bench/build-logs.txt', import.meta.url)),
  ),
  binary: repeat(Buffer.from(Array.from({ length: 9_973 }, (_, at) => (at * at * 31 + (at >> 3)) % 256))),
};

const hashKey = new Uint8Array(32);
const redactions = {
  'no rule': undefined,
  'tokens, one secret': compileRedaction({ secrets: { TOKEN: 'correct-horse-battery' }, hashKey }),
  'all built-in rules': compileRedaction({
    rules: TYPES.map((type) => ({ type, strategy: 'redact' })),
    secrets: { TOKEN: 'correct-horse-battery' },
    hashKey,
    now: () => performance.now(),
  }),
};

for (const [name, input] of Object.entries(inputs)) {
  for (const [rules, redaction] of Object.entries(redactions)) {
    if (!`${name}, ${rules}`.includes(process.argv[2] ?? '')) continue;
    rateOf(input, redaction?.redactor); // a first run, in which the code is compiled
    const rates = Array.from({ length: ROUNDS }, () => rateOf(input, redaction?.redactor)).sort((a, b) => a - b);
    const [least, median, most] = [rates[0], rates[ROUNDS >> 1], rates[ROUNDS - 1]].map((rate) =>
      Math.round(rate ?? 0),
    );
    console.log(`${name}, ${rules}: ${median} MB/s [${least}–${most}]`);
  }
}

function rateOf(input: Buffer, createRedactor: ReturnType<typeof compileRedaction>['redactor'] | undefined): number {
  const clean = new CleanOutput({
    streamBytes: 8 << 20,
    texts: { maxBytes: 262_144, maxLines: 10_000, keep: 'head-tail', encoding: 'utf8' },
    ...(createRedactor && { createRedactor }),
  });
  const from = process.cpuUsage();
  for (let at = 0; at < input.length; at += FRAME_BYTES) {
    clean.push('stdout', at, input.subarray(at, at + FRAME_BYTES));
    clean.release();
  }
  clean.end();
  clean.texts();
  const { user, system } = process.cpuUsage(from);
  return input.length / (user + system);
}

function repeat(part: Buffer): Buffer {
  return Buffer.alloc(BYTES, part);
}
