import { describe, expect, test } from 'vitest';
import { HostExecutionPolicy, RedactionRule } from '../index.ts';
import { type ShellToolMiddlewareOptions, toShellSpec } from './shell-tool-options.ts';

const specOf = (options: object) => toShellSpec(options as Omit<ShellToolMiddlewareOptions, 'fleet'>).given;
const invalid = (message: string | RegExp) =>
  expect.objectContaining({
    code: 'SESSION_SPEC_INVALID',
    message: typeof message === 'string' ? `The shell tool is not valid: ${message}` : expect.stringMatching(message),
  });

describe('the options of the middleware', () => {
  // S0-05, S1-31
  test('give the bounds of LangChain and the default sandbox when none is set', () => {
    expect(toShellSpec({}).resolved).toMatchObject({
      policy: { type: 'docker' },
      commandTimeoutMs: 30_000,
      startupTimeoutMs: 30_000,
      terminationTimeoutMs: 10_000,
      output: { maxLines: 100, maxBytes: 1_048_576, keep: 'head' },
      startupCommands: [],
      shutdownCommands: [],
    });
  });

  // S1-33
  test.each([
    ['none', undefined, undefined],
    ['one string', 'make', ['make']],
    ['a list', ['make', 'make test'], ['make', 'make test']],
    ['an empty list', [], []],
  ])('take %s as start-up and shutdown commands', (_what, commands, expected) => {
    const spec = specOf({ startupCommands: commands, shutdownCommands: commands });
    expect([spec.startupCommands, spec.shutdownCommands]).toEqual([expected, expected]);
  });

  // S1-34
  test('take a shell as a string or a list, and refuse an empty list', () => {
    expect(specOf({ shellCommand: '/bin/sh' }).shell).toEqual(['/bin/sh']);
    expect(specOf({ shellCommand: ['/bin/bash', '--norc'] }).shell).toEqual(['/bin/bash', '--norc']);
    expect(() => specOf({ shellCommand: [] })).toThrow(
      invalid('shellCommand: Shell command must contain at least one argument.'),
    );
  });

  // S1-35
  test('make strings of the values of variables, and refuse names that are none', () => {
    expect(specOf({ env: { PORT: 8080, DEBUG: false } }).env).toEqual({ PORT: '8080', DEBUG: 'false' });
    expect(() => specOf({ env: { [Symbol('name')]: 'value' } })).toThrow(
      invalid(/Environment variable names must be strings\.$/),
    );
    expect(() => specOf({ env: { 'not a name': 1 } })).toThrow(invalid(/not a name/));
  });

  // S1-32
  test('check redaction rules at construction, and keep their order', () => {
    const rules = [
      new RedactionRule({ piiType: 'email' }),
      { piiType: 'ip', strategy: 'mask' },
      { piiType: 'ticket', strategy: 'block', detector: /tick-\d+/gi },
      { piiType: 'key', strategy: 'hash', detector: 'k_[a-z]+' },
    ];
    expect(specOf({ redactionRules: rules }).redaction).toEqual([
      { type: 'email', strategy: 'redact' },
      { type: 'ip', strategy: 'mask' },
      { type: 'ticket', strategy: 'block', pattern: '(?i)tick-\\d+' },
      { type: 'key', strategy: 'hash', pattern: 'k_[a-z]+' },
    ]);
    const refused = (rule: object) => () => specOf({ redactionRules: [rule] });
    expect(refused({ piiType: 'nope', strategy: 'redact' })).toThrow(invalid(/nope is not a type that is built in/));
    expect(refused({ piiType: 'email', strategy: 'hide' })).toThrow(invalid(/must be 'block', 'redact'/));
    expect(refused({ piiType: 'own', strategy: 'redact', detector: '(' })).toThrow(invalid(/pattern/));
    expect(refused({ piiType: 'own', strategy: 'redact', detector: () => [] })).toThrow(
      invalid(/The detector of own is a function\. Give a pattern/),
    );
  });

  test('let the spec win over the policy, and the other options over the spec', () => {
    const executionPolicy = new HostExecutionPolicy({ maxOutputLines: 5, memoryBytes: 64 * 2 ** 20 });
    const spec = { output: { maxBytes: 9 }, limits: { pids: 99 }, commandTimeoutMs: 7, env: { A: '1' } };
    expect(specOf({ executionPolicy, spec, env: { B: 2 }, workspaceRoot: '/srv/project' })).toMatchObject({
      policy: 'host',
      output: { maxLines: 5, maxBytes: 9, keep: 'head' },
      limits: { memoryBytes: 64 * 2 ** 20, pids: 99 },
      commandTimeoutMs: 7,
      env: { B: '2' },
      workspace: '/srv/project',
    });
    expect(() => specOf({ spec: { comandTimeoutMs: 7 } })).toThrow(invalid('comandTimeoutMs: unknown field'));
  });
});
