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

/** Options of DockerExecutionPolicy. The operator of a host sets the engine and all further options of `docker run`. */
export interface DockerExecutionPolicyOptions extends ExecutionPolicyOptions {
  /**
   * Image of the container.
   * @default the image of the host
   */
  image?: string | undefined;
  /**
   * Whether the container is removed when the session ends. With `false` it stays, stopped, after a session whose last
   * command failed (`keepOnFailure`).
   * @default true
   */
  removeContainerOnExit?: boolean | undefined;
  /**
   * Whether the container reaches all networks of its host, which the operator must allow.
   * @default false
   */
  networkEnabled?: boolean | undefined;
  /**
   * Memory of the container in bytes, with swap.
   * @default 536,870,912
   */
  memoryBytes?: number | undefined;
  /**
   * Processors that the container may keep busy: `1.5` or `'1.5'`.
   * @default 1
   */
  cpus?: number | string | undefined;
  /**
   * Whether the root file system is read-only.
   * @default false
   */
  readOnlyRootfs?: boolean | undefined;
  /**
   * User of the shell: a name or uid, with `:group` if wanted.
   * @default 1000:1000
   */
  user?: string | undefined;
}

const NO_CPU_TIME = 'DockerExecutionPolicy does not support cpuTimeSeconds; configure CPU limits using cpus.';
const isNotBlank = (text: string) => text.trim() !== '';
const flag = z.boolean('must be true or false');

const optionsSchema = z
  .strictObject({
    ...commonOptions,
    memoryBytes: whole('must be positive if provided').optional(),
    cpus: z
      .union([z.number(), z.string().refine(isNotBlank, 'must be a non-empty string when provided')])
      .transform(Number)
      .optional(),
    user: z.string('must be a string').refine(isNotBlank, 'must be a non-empty string when provided').optional(),
    image: z.string('must be a string').optional(),
    removeContainerOnExit: flag.default(true),
    networkEnabled: flag.default(false),
    readOnlyRootfs: flag.default(false),
    cpuTimeSeconds: z.unknown().optional(),
  })
  .refine(({ cpuTimeSeconds }) => cpuTimeSeconds === undefined, NO_CPU_TIME);

/** A container of its own for each session: for commands that are not trusted. */
export class DockerExecutionPolicy implements ShellExecutionPolicy {
  readonly spec: SessionSpec;

  constructor(options: DockerExecutionPolicyOptions = {}) {
    const parsed = parsePolicyOptions(optionsSchema, options);
    const { memoryBytes, cpus, user, image, removeContainerOnExit, networkEnabled, readOnlyRootfs } = parsed;
    this.spec = {
      ...toCommonSpec(parsed),
      policy: { type: 'docker', readOnlyRootfs },
      limits: { memoryBytes, cpus },
      image,
      user,
      keepOnFailure: !removeContainerOnExit,
      sandbox: networkEnabled ? { network: 'full' } : undefined,
    };
  }
}
