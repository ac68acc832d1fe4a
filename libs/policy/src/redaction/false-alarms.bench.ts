import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileRedaction } from './compile.ts';

// Counts findings in text without tokens. DIRECTORY has the logs that bench/collect-logs.sh has collected.
// node_modules/.bin/node --conditions=@shellfleet/source libs/policy/src/redaction/false-alarms.bench.ts DIRECTORY
// [--show]

const [directory, show] = process.argv.slice(2);
if (directory === undefined) throw new Error('say where the collected logs are');
const redaction = compileRedaction({ hashKey: Buffer.alloc(32) });
let bytes = 0;
let alarms = 0;
for (const name of readdirSync(directory)) {
  const text = readFileSync(join(directory, name));
  const redactor = redaction.redactor();
  const output = Buffer.concat([redactor.push(text), redactor.end()]);
  const found = Object.values(redactor.counts).reduce((sum, count) => sum + count, 0);
  bytes += text.length;
  alarms += found;
  if (found > 0) console.log(name, { ...redactor.counts });
  if (found > 0 && show) for (const line of changedLines(text, output)) console.log(`  ${line}`);
}
console.log(`${alarms} in ${(bytes / 1e6).toFixed(0)} MB: ${(alarms / (bytes / 1e6)).toFixed(2)} a MB`);

function changedLines(before: Buffer, after: Buffer): string[] {
  const known = new Set(before.toString('latin1').split('\n'));
  return after
    .toString('latin1')
    .split('\n')
    .filter((line) => !known.has(line))
    .map((line) => line.slice(0, 300));
}
