import { fromWireResult, OUTPUT_PROFILES, type Outcome, type Result, type WireResult } from '@shellfleet/protocol';
import { sampleResult } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { toModelText } from './model-text.ts';

function result<O extends Outcome>(outcome: O, own: Partial<Extract<WireResult, { outcome: O }>> = {}): Result {
  return fromWireResult({ commandId: 'c', sessionId: 's' }, sampleResult(outcome, own));
}

const totals = (stdoutLines: number, stdoutBytes: number, stderrLines = 0, stderrBytes = 0) => ({
  stdoutLines,
  stdoutBytes,
  stderrLines,
  stderrBytes,
});
const artifact = {
  timed_out: false,
  exit_code: 0,
  truncated_by_lines: false,
  truncated_by_bytes: false,
  total_lines: 0,
  total_bytes: 0,
  redaction_matches: {},
};

describe('model text', () => {
  // S1-45, S1-26
  test('reports the seconds of a timeout, and keeps the output so far', () => {
    const given = result('timeout', { stdout: 'so far\n', reason: 'wall', totals: totals(1, 7) });
    expect(toModelText(given, { timeoutMs: 30_000 })).toEqual({
      text: 'Error: Command timed out after 30.0 seconds.\n\nso far',
      status: 'error',
      artifact: { ...artifact, timed_out: true, exit_code: null, total_lines: 1, total_bytes: 7 },
    });
    expect(toModelText(result('timeout'), { timeoutMs: 1_250 }).text).toBe(
      'Error: Command timed out after 1.3 seconds.',
    );
    const ran = result('timeout', { timings: { queuedMs: 0, startMs: 0, runMs: 700, totalMs: 700 } });
    expect(toModelText(ran).text).toBe('Error: Command timed out after 0.7 seconds.');
    // S1-63: the text reports the limit, not the running time, which includes the stop ladder.
    const limited = result('timeout', { ...ran, limitMs: 1_000 } as never);
    expect(toModelText(limited).text).toBe('Error: Command timed out after 1.0 seconds.');
  });

  const blocked = {
    redactions: { email: 2 },
    blocked: { type: 'email', reason: 'matched' as const },
  };

  // S1-46
  test('reports the type of blocked output in the text, and only counts in the artifact', () => {
    expect(toModelText(result('blocked', { exitCode: 3, ...blocked }))).toEqual({
      text: 'Output blocked: detected email.',
      status: 'error',
      artifact: { ...artifact, exit_code: 3, redaction_matches: { email: 2 } },
    });
    expect(toModelText(result('timeout', blocked), { timeoutMs: 2_000 }).text).toBe(
      'Error: Command timed out after 2.0 seconds.\n\nOutput blocked: detected email.',
    );
  });

  // S1-47
  test('reports empty output as <no output>', () => {
    expect(toModelText(result('success'))).toEqual({ text: '<no output>', status: 'success', artifact });
    expect(toModelText(result('success', { stdout: ' \n\n' })).text).toBe('<no output>');
  });

  // S1-48
  test('appends truncation and exit code to the output, each after a blank line', () => {
    const given = result('failure', {
      exitCode: 2,
      stdout: 'a\nb\n[... 96 bytes, 118 lines omitted ...]',
      truncated: { bytes: true, lines: true },
      totals: totals(120, 100),
    });
    expect(toModelText(given, { output: { maxLines: 2, maxBytes: 50, keep: 'head' } })).toEqual({
      text: [
        'a\nb',
        '... Output truncated at 2 lines (observed 120).',
        '... Output truncated at 50 bytes (observed 100).',
        'Exit code: 2',
      ].join('\n\n'),
      status: 'error',
      artifact: {
        ...artifact,
        exit_code: 2,
        truncated_by_lines: true,
        truncated_by_bytes: true,
        total_lines: 120,
        total_bytes: 100,
      },
    });
    expect(toModelText(result('failure', { exitCode: 1, stdout: 'x  \n\n' })).text).toBe('x\n\nExit code: 1');
    expect(toModelText(result('failure', { exitCode: 143, signal: 'SIGTERM' })).text).toBe(
      '<no output>\n\nEnded by SIGTERM',
    );
  });

  // S2-28
  test('keeps a truncation marker in the middle of the output, where output is missing', () => {
    const stdout = 'a\n[... 96 bytes, 118 lines omitted ...]\nz\n';
    const given = result('success', { stdout, truncated: { bytes: false, lines: true }, totals: totals(120, 100) });
    expect(toModelText(given, { output: { maxLines: 2, keep: 'head-tail' } }).text).toBe(
      'a\n[... 96 bytes, 118 lines omitted ...]\nz\n\n... Output truncated at 2 lines (observed 120).',
    );
  });

  // S1-25
  test.each([
    ['in the order of arrival', 'a\nb\n', 'x\n', 'a\nx\nb\n', 'a\n[stderr] x\nb'],
    ['without stdout', '', 'x\ny', 'x\ny', '[stderr] x\n[stderr] y'],
    ['that equal lines of stdout', 'same\n', 'same\n', 'same\nsame\n', 'same\n[stderr] same'],
    ['that share a line with stdout', 'a', 'x\n', 'ax\n', 'a\n[stderr] x'],
  ])('marks lines of stderr %s', (_what, stdout, stderr, output, expected) => {
    expect(toModelText(result('success', { stdout, stderr, output })).text).toBe(expected);
  });

  // S1-23, S2-02
  test('has profiles with the limits of langchain and codex', () => {
    expect(OUTPUT_PROFILES).toMatchObject({
      langchain: { maxLines: 100, keep: 'head' },
      codex: { maxLines: 256, maxBytes: 10_240, keep: 'head' },
    });
  });

  // S1-49, S1-50
  test('reports the redaction counts of a success in the artifact', () => {
    const given = result('success', {
      stdout: 'by [REDACTED_EMAIL]\n',
      redactions: { email: 1 },
      totals: totals(1, 20),
    });
    expect(toModelText(given)).toEqual({
      text: 'by [REDACTED_EMAIL]',
      status: 'success',
      artifact: { ...artifact, total_lines: 1, total_bytes: 20, redaction_matches: { email: 1 } },
    });
  });

  // S3-16
  test('names an error, loss, denial or cancellation, and reports that the shell lost its state', () => {
    const error = { code: 'CONTAINER_LOST', message: 'The container ran out of memory.', retryable: false };
    const shell = { state: 'lost', reason: 'the container ran out of memory', epoch: 2 } as const;
    expect(toModelText(result('error', { error, shell, stdout: 'half' }))).toMatchObject({
      text: 'Error: The container ran out of memory.\n\nhalf\n\nThe state of the shell was lost: the container ran out of memory.',
      status: 'error',
    });
    expect(toModelText(result('cancellation')).text).toBe('Error: Command was cancelled.');
    expect(toModelText(result('lost')).text).toMatch(/^Error: The host was lost/);
    expect(toModelText(result('denial')).text).toBe('Error: The command was not run.');
  });

  // S2-01, S2-17
  test('reports a suspected denial by the sandbox, and how to request escalation', () => {
    const line = 'touch: /etc/a: Read-only file system';
    const denied = { what: 'files', line, mayAsk: true } as const;
    const failure = { stderr: `${line}\n`, denied };
    expect(toModelText(result('failure', failure)).text).toBe(
      `[stderr] ${line}\n\nExit code: 1\n\nThe sandbox seems to have denied it access to a file: ${line}\nTo ask for it to run outside the sandbox, submit it again with escalate and a justification.`,
    );
    const cannot = `[stderr] ${line}\n\nExit code: 1\n\nThe sandbox seems to have denied it access to a file: ${line}`;
    expect(toModelText(result('failure', failure), { canEscalate: false }).text).toBe(cannot);
    expect(toModelText(result('failure', { ...failure, denied: { ...denied, mayAsk: false } })).text).toBe(cannot);
    expect(toModelText(result('failure', { ...failure, refused: 'ada denied it' })).text).toMatch(
      /\nIt did not run outside the sandbox: ada denied it$/,
    );
  });

  test('reports that a command ran outside the sandbox, with its first attempt inside', () => {
    expect(toModelText(result('success', { stdout: 'ok\n', outside: true })).text).toBe(
      'ok\n\nIt ran outside the sandbox.',
    );
    const firstAttempt = { exitCode: 2, output: 'Read-only file system\n' };
    expect(toModelText(result('success', { stdout: 'ok\n', outside: true, attempts: 2, firstAttempt })).text).toBe(
      'ok\n\nIt ran outside the sandbox. Its first attempt, inside, ended with exit code 2:\nRead-only file system',
    );
  });
});
