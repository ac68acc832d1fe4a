import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { newResult, sessionKeys, sessionSpecSchema } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import { pino } from 'pino';
import { createSessionRedaction } from '../redaction/session-redaction.ts';
import { openAudit } from './file-audit.ts';
import { endEvent, submissionEvent } from './session-events.ts';

// Processor time of the records of one command (submission, start, end): they are described, authenticated and written
// to their file twice a second. Other load on the machine has little effect on that time. Run it with
// node_modules/.bin/node --conditions=@shellfleet/source apps/worker/src/audit/audit.bench.ts

const COMMANDS = 50_000;
/** Commands that end within half a second on a busy host. */
const AT_ONCE = 500;
const ABOUT = { session: 'build', generation: '1795399776358', entry: '01M832MY39WNAJYRWNGD021FBY' };

const directory = mkdtempSync(join(tmpdir(), 'sf-audit-bench-'));
const sealKeys = [createSealKey()];
const audit = await openAudit({
  ...{
    directory,
    namespace: 'n',
    hostId: 'h',
    stateDirectoryId: 'f',
    sealKeys,
    retentionMs: 90 * 86_400_000,
    noted: true,
  },
  ...{ anchored: new Map(), logger: pino({ level: 'silent' }) },
});
const spec = sessionSpecSchema.parse({ image: 'debian:12' });
const redaction = createSessionRedaction(spec, sessionKeys('n', 't', 's'), createSealer(sealKeys));
const payload = { type: 'command', script: 'git status && npm test -- --run' } as never;
const result = newResult({ outcome: 'success', exitCode: 0, reason: 'exited' });
const start = { type: 'start', ...ABOUT, fence: 1, epoch: 1 } as const;
const noted: number[] = [];
const written: number[] = [];
for (let round = 0; round < 5; round += 1) {
  const before = process.cpuUsage();
  let notes = 0;
  for (let done = 0; done < COMMANDS; done += AT_ONCE) {
    const from = performance.now();
    for (let n = 0; n < AT_ONCE; n += 1) {
      audit.note('t', () => submissionEvent(ABOUT, { acceptedAt: 0 }, payload, spec, redaction, {}));
      audit.note('t', () => start);
      audit.note('t', () => endEvent(ABOUT, result, redaction));
    }
    notes += performance.now() - from;
    await audit.close();
  }
  const { user, system } = process.cpuUsage(before);
  noted.push((1_000 * notes) / COMMANDS);
  written.push((user + system) / COMMANDS);
}
rmSync(directory, { recursive: true });
const least = (values: number[]) => Math.min(...values).toFixed(1);
process.stdout.write(`a command: ${least(noted)} µs until it goes on, ${least(written)} µs of processor in all\n`);
