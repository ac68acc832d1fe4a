import type { SessionSpec } from '@shellfleet/client';
import { z } from 'zod';
import {
  commonOptions,
  type ExecutionPolicyOptions,
  type ShellExecutionPolicy,
  toCommonSpec,
} from './execution-policy.ts';
import { parsePolicyOptions } from './parse-policy-options.ts';

/** Options of CodexSandboxExecutionPolicy. The operator of a host chooses the program; the platform is Linux. */
export interface CodexSandboxExecutionPolicyOptions extends ExecutionPolicyOptions {
  /**
   * Settings that narrow Codex's sandbox, by their dotted keys.
   * @default none
   */
  configOverrides?: Record<string, unknown> | undefined;
}

const optionsSchema = z.strictObject({
  ...commonOptions,
  configOverrides: z.record(z.string(), z.unknown(), 'must be an object').default({}),
});

/** The host within the sandbox of the Codex CLI. The operator of the host must offer the policy `codex`. */
export class CodexSandboxExecutionPolicy implements ShellExecutionPolicy {
  readonly spec: SessionSpec;

  constructor(options: CodexSandboxExecutionPolicyOptions = {}) {
    const { configOverrides, ...common } = parsePolicyOptions(optionsSchema, options);
    this.spec = { ...toCommonSpec(common), policy: { type: 'codex', configOverrides } };
  }
}
