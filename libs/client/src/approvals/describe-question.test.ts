import type { Approval } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { describeQuestion } from './describe-question.ts';

const QUESTION: Approval = {
  id: 'q1',
  state: 'pending',
  place: 'docker, workspace-write, no network',
  env: [],
  sessionId: 'build',
  commandId: 'build.01JZX0Y7R8QWERTY0123456789',
  script: 'git fetch\nrm -rf /workspace/old',
  reason: 'rm may delete files',
  count: 1,
  askedAt: '2026-01-01T00:00:00.000Z',
  expiresAt: '2026-01-01T00:10:00.000Z',
};

describe('the description of a question', () => {
  test('shows the whole script, its place, and the reason of the question', () => {
    expect(describeQuestion(QUESTION)).toEqual([
      'question  q1, until 2026-01-01T00:10:00.000Z',
      'session   build',
      'command   build.01JZX0Y7R8QWERTY0123456789',
      'where     docker, workspace-write, no network',
      'because   rm may delete files',
      'script',
      '  | git fetch',
      '  | rm -rf /workspace/old',
    ]);
  });

  test('counts the sessions that ask the same question', () => {
    expect(describeQuestion({ ...QUESTION, count: 2 })[1]).toBe('session   build and 1 other session');
    expect(describeQuestion({ ...QUESTION, count: 500 })[1]).toBe('session   build and 499 other sessions');
  });

  test('shows what the widest answer would allow, with its alternatives', () => {
    const amendment = { pattern: ['git', ['fetch', 'pull'], 'a b'], decision: 'allow' as const };
    expect(describeQuestion({ ...QUESTION, amendment }).at(-1)).toBe(
      "--for prefix would allow from then on: git [fetch|pull] 'a b' …",
    );
  });

  test('shows size and digest of a file operation, and the directory of the scope session', () => {
    const covers = { pattern: ['files.write', '/workspace/out'], under: 'u' };
    const content = { files: 1, bytes: 3, sha256: 'abc' };
    const asked = { ...QUESTION, script: 'files.write /workspace/out/a', content, covers };
    expect(describeQuestion(asked).slice(4)).toEqual([
      'writes    3 bytes, SHA-256 abc',
      'because   rm may delete files',
      'script',
      '  | files.write /workspace/out/a',
      'The scope session would allow in its session from then on: files.write /workspace/out …',
    ]);
    expect(describeQuestion({ ...asked, content: { ...content, files: 2 } })).toContain(
      'writes    2 files, 3 bytes, SHA-256 abc of their list',
    );
  });

  test('names the caller that submitted it', () => {
    const submittedBy = { id: 'key-1', name: 'nightly' };
    expect(describeQuestion({ ...QUESTION, submittedBy })[3]).toBe('asks      nightly');
  });

  test('marks the words of the caller', () => {
    expect(describeQuestion({ ...QUESTION, justification: 'Approved by the operator.' })).toContain(
      'the caller says (not verified) Approved by the operator.',
    );
  });

  test('shows that a command leaves the sandbox, and what it brings', () => {
    const outside = {
      ...QUESTION,
      outside: true as const,
      cwd: '/workspace/app',
      env: ['TOKEN'],
      stdin: { bytes: 3, sha256: 'abc' },
      firstAttempt: { exitCode: 1, output: 'Permission denied' },
    };
    expect(describeQuestion(outside)).toEqual([
      'question  q1, until 2026-01-01T00:10:00.000Z',
      'session   build',
      'command   build.01JZX0Y7R8QWERTY0123456789',
      'where     OUTSIDE its sandbox: docker, workspace-write, no network, in /workspace/app',
      'brings    the variables TOKEN',
      'stdin     3 bytes, SHA-256 abc',
      'because   rm may delete files',
      'script',
      '  | git fetch',
      '  | rm -rf /workspace/old',
      'its first attempt, inside the sandbox, ended with exit code 1 and printed',
      '  | Permission denied',
    ]);
  });

  test.each([
    ['a control character', 'echo \u001b[2K', '  | echo \\u001b[2K'],
    ['a carriage return', 'rm -rf /\recho hello', '  | rm -rf /\\u000decho hello'],
    ['a change of direction', 'echo \u202egnp.exe', '  | echo \\u202egnp.exe'],
    ['a character without width', 'ec\u200bho', '  | ec\\u200bho'],
    ['a tag character', 'echo \u{e0041}', '  | echo \\u{e0041}'],
  ])('shows %s in a script as an escape', (_name, script, shown) => {
    expect(describeQuestion({ ...QUESTION, script }).at(-1)).toBe(shown);
  });
});
