import { spawnSync } from 'node:child_process';
import { compileRedaction } from '@shellfleet/policy';
import { CleanOutput } from './clean-output.ts';

// How fast one core takes output through the whole chain (decode, redact with every built-in rule, count, cut, hand out), as a worker
// does it: frames of 64 KiB. Time is that of the processor, so that what else the machine does counts less. node_modules/.bin/node --conditions=@shellfleet/source apps/worker/src/output/output-chain.bench.ts

const BYTES = 64 << 20;
const FRAME_BYTES = 64 << 10;
const ROUNDS = 5;
const TYPES = ['email', 'credit_card', 'ip', 'mac_address', 'url'];

const inputs: Record<string, Buffer> = {
  yes: repeat(Buffer.from('y\n')),
  numbers: Buffer.from(spawnSync('seq', ['1', '8500000'], { maxBuffer: 2 * BYTES }).stdout).subarray(0, BYTES),
  'build log': repeat(Buffer.from(buildLog())),
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
    maxBytes: 262_144,
    maxLines: 10_000,
    keep: 'head-tail',
    encoding: 'utf8',
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

function buildLog(): string {
  return [
    'npm warn deprecated inflight@1.0.6: This module is not supported, and leaks memory.',
    'src/server/handlers/session-registry.ts(118,23): error TS2345: Argument of type string is not assignable.',
    '[ 37%] Building CXX object lib/CMakeFiles/core.dir/parser/lexer.cpp.o',
    '2026-03-14T09:26:53.589Z INFO  worker-7 request 8f14e45f-ceea-467f-a9ad-2b6f1c4d5e6f took 128 ms (200 OK)',
    'Get:14 http://deb.debian.org/debian bookworm/main amd64 libssl3 amd64 3.0.15-1 [2,022 kB]',
    'Successfully built 1f3870be274f6c49b3e31a0c6728957f',
    '\u2713 handles 10,000 rows in one batch (412ms)',
    'at Object.<anonymous> (/app/node_modules/pkg/lib/index.js:1024:17)',
    'Contact ops@example.com from 10.1.2.3 for access to the registry.',
    '',
  ].join('\n');
}
