import { describe, expect, test } from 'vitest';
import {
  CodexSandboxExecutionPolicy,
  DockerExecutionPolicy,
  HostExecutionPolicy,
  type ShellExecutionPolicy,
} from '../index.ts';

const bounds = {
  commandTimeoutMs: 30_000,
  startupTimeoutMs: 30_000,
  terminationTimeoutMs: 10_000,
  output: { maxLines: 100, maxBytes: 1_048_576, keep: 'head' },
};
type Policy = new (options?: never) => ShellExecutionPolicy;

/** Returns the message with which a policy refuses options. */
function refusal(Policy: Policy, options: object): string {
  try {
    new Policy(options as never);
  } catch (error) {
    expect(error).toMatchObject({ code: 'SESSION_SPEC_INVALID' });
    return (error as Error).message;
  }
  return 'none';
}

describe('an execution policy of LangChain', () => {
  // S0-05, S0-31
  test('has the bounds of LangChain by default', () => {
    expect(new HostExecutionPolicy().spec).toEqual({ ...bounds, policy: 'host', limits: {} });
    expect(new CodexSandboxExecutionPolicy().spec).toEqual({
      ...bounds,
      policy: { type: 'codex', configOverrides: {} },
    });
    expect(new DockerExecutionPolicy().spec).toEqual({
      ...bounds,
      policy: { type: 'docker', readOnlyRootfs: false },
      limits: {},
      keepOnFailure: false,
    });
  });

  test('sets the fields of a spec that its options name', () => {
    const given = { commandTimeoutMs: 1, startupTimeoutMs: 2, terminationTimeoutMs: 3 };
    const common = { ...given, output: { maxLines: 4, maxBytes: 5, keep: 'head' } };
    const options = { ...given, maxOutputLines: 4, maxOutputBytes: 5 };
    expect(new HostExecutionPolicy({ ...options, cpuTimeSeconds: 6, memoryBytes: 7 }).spec).toEqual({
      ...common,
      policy: 'host',
      limits: { cpuTimeSeconds: 6, memoryBytes: 7 },
    });
    const configOverrides = { 'sandbox_workspace_write.exclude_slash_tmp': true };
    expect(new CodexSandboxExecutionPolicy({ ...options, configOverrides }).spec).toEqual({
      ...common,
      policy: { type: 'codex', configOverrides },
    });
    const container = { image: 'python:3.12', user: '65534', readOnlyRootfs: true };
    const docker = { ...container, memoryBytes: 8, cpus: '1.5', networkEnabled: true, removeContainerOnExit: false };
    expect(new DockerExecutionPolicy({ ...options, ...docker }).spec).toEqual({
      ...common,
      policy: { type: 'docker', readOnlyRootfs: true },
      limits: { memoryBytes: 8, cpus: 1.5 },
      image: 'python:3.12',
      user: '65534',
      sandbox: { network: 'full' },
      keepOnFailure: true,
    });
  });

  // S0-06, S0-10, S0-11, S0-32, S0-33, S0-34, S0-35
  test.each<[string, Policy, object, string]>([
    ['no lines', HostExecutionPolicy, { maxOutputLines: 0 }, 'maxOutputLines must be positive.'],
    ['no bytes', CodexSandboxExecutionPolicy, { maxOutputBytes: -1 }, 'maxOutputBytes must be positive.'],
    ['no time', DockerExecutionPolicy, { commandTimeoutMs: 0 }, 'commandTimeoutMs must be positive.'],
    ['no start', HostExecutionPolicy, { startupTimeoutMs: 0 }, 'startupTimeoutMs must be positive.'],
    ['no end', HostExecutionPolicy, { terminationTimeoutMs: 0 }, 'terminationTimeoutMs must be positive.'],
    ['no CPU time', HostExecutionPolicy, { cpuTimeSeconds: 0 }, 'cpuTimeSeconds must be positive if provided.'],
    ['no memory', HostExecutionPolicy, { memoryBytes: 0 }, 'memoryBytes must be positive if provided.'],
    ['no memory', DockerExecutionPolicy, { memoryBytes: -1 }, 'memoryBytes must be positive if provided.'],
    [
      'CPU time',
      DockerExecutionPolicy,
      { cpuTimeSeconds: 60 },
      'DockerExecutionPolicy does not support cpuTimeSeconds; configure CPU limits using cpus.',
    ],
    ['blank processors', DockerExecutionPolicy, { cpus: ' ' }, 'cpus must be a non-empty string when provided.'],
    ['a blank user', DockerExecutionPolicy, { user: ' ' }, 'user must be a non-empty string when provided.'],
    ['another binary', CodexSandboxExecutionPolicy, { binary: 'codex' }, 'binary is not an option.'],
  ])('refuses %s', (_what, Policy, options, message) => {
    expect(refusal(Policy, options)).toBe(message);
  });

  // S0-12
  test('names the faults of the bounds that every policy has first', () => {
    expect(refusal(HostExecutionPolicy, { memoryBytes: 0, maxOutputLines: 0 })).toBe(
      'maxOutputLines must be positive. memoryBytes must be positive if provided.',
    );
  });
});
