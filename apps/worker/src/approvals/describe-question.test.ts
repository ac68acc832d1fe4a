import { createHash } from 'node:crypto';
import { commandPayloadSchema, sessionSpecSchema } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import type { AdmissionInput, ApprovalQuestion } from '../admission/admission.ts';
import { toStoredQuestion } from './describe-question.ts';

const shown = {
  value: <T>(value: T) => JSON.parse(JSON.stringify(value).replaceAll('hunter2', '[REDACTED_SECRET]')) as T,
};
const question: AdmissionInput = {
  ...{ tenant: 't', session: 's', generation: 'g', entryId: '01J', epoch: 1, opens: false, attempt: { number: 1 } },
  wider: {
    refusal: undefined,
    sandbox: { mode: 'workspace-write', network: 'full', selection: 'auto', escalateOnFailure: false },
  },
  payload: commandPayloadSchema.parse({
    ...{ type: 'command', script: 'login hunter2', timeoutMs: 1_000, encoding: 'utf8' },
    ...{ env: { TOKEN: 'x' }, cwd: '/tmp', network: 'restricted', stdin: Buffer.from('abc').toString('base64') },
  }),
  spec: sessionSpecSchema.parse({
    ...{ sandbox: { mode: 'read-only', network: 'full' }, image: 'debian' },
    ...{ env: { PATH: '/workspace/bin', TOKEN: 'y' }, secrets: { KEY: 'hunter2' } },
  }),
};
const common = {
  ...{ sessionId: 's', commandId: 's.01J', script: 'login [REDACTED_SECRET]', env: ['TOKEN', 'PATH', 'KEY'] },
  stdin: { bytes: 3, sha256: createHash('sha256').update('abc').digest('hex') },
  place: 'policy docker, mode read-only, network restricted, image debian',
};

describe('the description of a question', () => {
  test('shows session, command, sandbox and reason, all redacted', () => {
    const asked = { reason: 'hunter2 is dangerous', justification: 'I need hunter2', outside: true as const };
    expect(toStoredQuestion(question, asked, shown)).toEqual({
      ...common,
      // The place where the command would run, not that of its session.
      place: 'policy docker, mode workspace-write, network restricted, image debian',
      ...{ reason: '[REDACTED_SECRET] is dangerous', justification: 'I need [REDACTED_SECRET]', outside: true },
    });
  });

  // S3-06
  test('shows the end of the first attempt when a second one is asked about', () => {
    const second = {
      ...question,
      attempt: { number: 2 as const, exitCode: 1, output: 'hunter2: Read-only file system' },
    };
    expect(toStoredQuestion(second, { reason: 'denied' }, shown)).toEqual({
      ...{ ...common, reason: 'denied' },
      firstAttempt: { exitCode: 1, output: '[REDACTED_SECRET]: Read-only file system' },
    });
  });

  // fault 103
  test('shows the redacted directory of the shell, or why it is unknown', () => {
    const at = (directory: ApprovalQuestion['directory']) =>
      toStoredQuestion(question, { reason: 'r', ...(directory && { directory }) }, shown);
    expect(at(undefined)).toEqual({ ...common, reason: 'r' });
    expect(at({ path: '/tmp/hunter2' })).toEqual({ ...common, reason: 'r', cwd: '/tmp/[REDACTED_SECRET]' });
    expect(at({ unknown: 'in hunter2' })).toEqual({ ...common, reason: 'r', cwdUnknown: 'in [REDACTED_SECRET]' });
  });

  test('offers no amendment that redaction would change', () => {
    const amendment = (word: string) => ({ pattern: ['login', word], decision: 'allow' as const });
    expect(toStoredQuestion(question, { reason: 'r', amendment: amendment('me') }, shown)).toHaveProperty('amendment');
    expect(toStoredQuestion(question, { reason: 'r', amendment: amendment('hunter2') }, shown)).not.toHaveProperty(
      'amendment',
    );
  });
});
