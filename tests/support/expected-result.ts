import type { Result } from '@shellfleet/client';
import { expect } from 'vitest';

const anyNumber = (): number => expect.any(Number) as number;

/** Fields of Results of any outcome. */
export type ExpectedFields = { [field in keyof Result]?: Result[field] };

/** Returns the whole Result of a successful command on `h1`. `own` replaces fields. */
export function expectedResult(sessionId: string, own: ExpectedFields = {}): Result {
  const stdout = own.stdout ?? '';
  const stderr = own.stderr ?? '';
  return {
    commandId: expect.stringMatching(`^${RegExp.escape(sessionId)}\\.[0-9A-Z]{26}$`) as string,
    sessionId,
    outcome: 'success',
    exitCode: 0,
    signal: null,
    reason: 'exited',
    stdout,
    stderr,
    output: stdout + stderr,
    truncated: { bytes: false, lines: false },
    totals: {
      stdoutBytes: Buffer.byteLength(stdout),
      stderrBytes: Buffer.byteLength(stderr),
      stdoutLines: countLines(stdout),
      stderrLines: countLines(stderr),
    },
    redactions: {},
    deduplicated: false,
    shell: { state: 'kept', epoch: 1 },
    timings: { queuedMs: anyNumber(), startMs: anyNumber(), runMs: anyNumber(), totalMs: anyNumber() },
    receipt: expect.objectContaining({ totalMs: anyNumber(), parts: expect.any(Array) }) as Result['receipt'],
    hostId: 'h1',
    ...ranIn(own),
    ...(own.outcome === 'timeout' && own.reason !== 'not-started' ? { limitMs: anyNumber() } : {}),
    ...own,
  } as Result;
}

/**
 * Returns the digest of the image in which the command ran, and what it used. Commands that were denied or did not
 * start have neither, lost commands only the digest, and tests of other policies pass undefined.
 */
function ranIn({ outcome, reason, hostId }: ExpectedFields): Pick<ExpectedFields, 'imageDigest' | 'usage'> {
  const hasRun = outcome !== 'denial' && outcome !== 'error' && reason !== 'not-started' && hostId !== null;
  if (!hasRun) return {};
  return {
    imageDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) as string,
    ...(outcome !== 'lost' && { usage: { cpuMs: anyNumber(), peakMemoryBytes: anyNumber() } }),
  };
}

/** Returns the number of lines. A last line without a newline counts too. */
function countLines(text: string): number {
  return text === '' ? 0 : text.replace(/\n$/, '').split('\n').length;
}
