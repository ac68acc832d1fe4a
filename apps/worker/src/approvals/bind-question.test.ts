import { commandPayloadSchema, sessionSpecSchema } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import type { AdmissionInput, ApprovalQuestion } from '../admission/admission.ts';
import { bindQuestion } from './bind-question.ts';

const sealer = createSealer([createSealKey()]);
const payload = (given: object = {}) =>
  commandPayloadSchema.parse({ type: 'command', script: 'make', timeoutMs: 1_000, encoding: 'utf8', ...given });
const asked: ApprovalQuestion = { reason: 'it asks', matchedRules: [{ pattern: ['make'], decision: 'prompt' }] };

function question(given: Partial<AdmissionInput> = {}): AdmissionInput {
  return {
    ...{
      tenant: 't',
      session: 's',
      generation: 'g',
      entryId: 'e',
      epoch: 1,
      attempt: { number: 1 as const },
      opens: false,
      wider: { refusal: undefined, sandbox: undefined },
    },
    payload: payload(),
    spec: sessionSpecSchema.parse({ env: { A: '1' }, secrets: { S: 'secret' }, image: 'debian' }),
    ...given,
  };
}

const bind = (of: AdmissionInput, about = asked, namespace = 'n') => bindQuestion(of, about, namespace, sealer);
const first = bind(question());
const second = bind(question({ attempt: { number: 2, exitCode: 1, output: 'no' } }));
const spec = (given: object) =>
  sessionSpecSchema.parse({ env: { A: '1' }, secrets: { S: 'secret' }, image: 'debian', ...given });

describe('the binding of a question', () => {
  test('is equal for equal questions and reveals nothing of them', () => {
    expect(bind(question())).toEqual(first);
    expect(first.hash).toMatch(/^[0-9a-f]{20}$/);
  });

  describe('BIND-1: one question for all sessions, with an answer for each', () => {
    test.each([
      ['session', { session: 'other' }],
      ['generation of the session', { generation: 'h' }],
      ['entry', { entryId: 'f' }],
      ['shell', { epoch: 2 }],
      [
        'labels, priority and times',
        { spec: spec({ labels: { a: 'b' }, priority: 3, idleTimeoutMs: 5, maxLifetimeMs: 6 }) },
      ],
    ])('with another %s it is the same question', (name, other) => {
      const bound = bind(question(other));
      expect(bound.hash).toBe(first.hash);
      // What runs does not depend on the labels.
      if (!name.startsWith('labels')) expect(bound.binding).not.toBe(first.binding);
    });
  });

  describe('BIND-2: an answer holds for nothing else', () => {
    test.each([
      ['tenant', { tenant: 'u' }],
      ['script', { payload: payload({ script: 'make ' }) }],
      ['directory', { payload: payload({ cwd: '/tmp' }) }],
      ['variable', { payload: payload({ env: { A: '2' } }) }],
      ['stdin', { payload: payload({ stdin: 'YQ==' }) }],
      ['network', { payload: payload({ network: 'restricted' }) }],
      ['secret', { spec: spec({ secrets: { S: 'other' } }) }],
      ["variable of the session's", { spec: spec({ env: { A: '2' } }) }],
      ['image', { spec: spec({ image: 'alpine' }) }],
      ['label of its host', { spec: spec({ hosts: { stage: 'production' } }) }],
      ['sandbox', { spec: spec({ sandbox: { mode: 'read-only' } }) }],
      ['opening with startup commands', { opens: true, spec: spec({ startupCommands: ['true'] }) }],
      ['exit code of its first attempt', { attempt: { number: 2 as const, exitCode: 2, output: 'no' } }],
      ['output of its first attempt', { attempt: { number: 2 as const, exitCode: 1, output: 'yes' } }],
      ['attempt', { attempt: { number: 2 as const, exitCode: 1, output: '' } }],
    ])('with another %s it is another question', (_name, other) => {
      const compared = 'attempt' in other ? [first, second] : [first];
      for (const { hash, binding } of compared) {
        expect(bind(question(other)).hash).not.toBe(hash);
        expect(bind(question(other)).binding).not.toBe(binding);
      }
    });

    // fault 103
    test('differs for another directory and for an unknown one', () => {
      const at = (directory?: ApprovalQuestion['directory']) =>
        bind(question(), { ...asked, ...(directory && { directory }) });
      const bound = [at(), at({ path: '/a' }), at({ path: '/b' }), at({ unknown: '/a' }), at({ unknown: '/b' })];
      expect(new Set(bound.map(({ hash }) => hash)).size).toBe(5);
      expect(new Set(bound.map(({ binding }) => binding)).size).toBe(5);
      expect(at({ path: '/a' })).toEqual(bound[1]);
    });

    test('differs for other rules, reasons, namespaces and for leaving the sandbox', () => {
      const others = [
        bind(question(), { ...asked, matchedRules: [] }),
        bind(question(), { ...asked, reason: 'other' }),
        bind(question(), { ...asked, outside: true }),
        bind(question(), asked, 'm'),
      ].map(({ hash }) => hash);
      expect(new Set([first.hash, ...others]).size).toBe(5);
    });

    test('differs for another wider sandbox if the command would run there', () => {
      const wide = (network: 'limited' | 'full', outside?: true) =>
        bind(
          question({ wider: { refusal: undefined, sandbox: spec({ sandbox: { network } }).sandbox } }),
          outside ? { ...asked, outside } : asked,
        ).hash;
      expect(wide('full', true)).not.toBe(wide('limited', true));
      expect(wide('full')).toBe(wide('limited'));
    });
  });

  // S3-05
  test('is refused for a question that cannot be written as JSON (BIND-3)', () => {
    const round: unknown[] = [];
    round.push(round);
    expect(() => bind(question(), { ...asked, matchedRules: round })).toThrow();
  });
});
