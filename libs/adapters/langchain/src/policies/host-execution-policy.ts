import type { SessionSpec } from '@shellfleet/client';
import { z } from 'zod';
import {
  commonOptions,
  type ExecutionPolicyOptions,
  type ShellExecutionPolicy,
  toCommonSpec,
  whole,
} from './execution-policy.ts';
import { parsePolicyOptions } from './parse-policy-options.ts';

/** Options of HostExecutionPolicy. */
export interface HostExecutionPolicyOptions extends ExecutionPolicyOptions {
  /**
   * Processor time of each process in seconds.
   * @default no limit
   */
  cpuTimeSeconds?: number | undefined;
  /**
   * Memory of all processes in bytes.
   * @default no limit
   */
  memoryBytes?: number | undefined;
}

const optionsSchema = z.strictObject({
  ...commonOptions,
  cpuTimeSeconds: whole('must be positive if provided').optional(),
  memoryBytes: whole('must be positive if provided').optional(),
});

/**
 * The host itself, without isolation of files and network: for trusted commands, or where the host is a sandbox
 * already. The operator of the host must offer the policy `host`.
 */
export class HostExecutionPolicy implements ShellExecutionPolicy {
  readonly spec: SessionSpec;

  constructor(options: HostExecutionPolicyOptions = {}) {
    const { cpuTimeSeconds, memoryBytes, ...common } = parsePolicyOptions(optionsSchema, options);
    this.spec = { ...toCommonSpec(common), policy: 'host', limits: { cpuTimeSeconds, memoryBytes } };
  }
}
