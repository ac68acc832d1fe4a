import { z } from 'zod';

const driverSchema = z.object({
  /** When it began and ended, by the clock of its machine; ISO 8601. A driver that was killed has no end. */
  startedAt: z.string(),
  endedAt: z.string().optional(),
  /** Name of its machine. */
  machine: z.string(),
  /** Versions of the client, of its protocol and of Node.js. */
  client: z.string(),
  protocol: z.number(),
  node: z.string(),
});

const hostSchema = z.object({ id: z.string(), version: z.string(), policies: z.array(z.string()) });

/** Content of `<results file>.batch`: what ran a batch, and with what. It is rewritten in one step when it changes. */
export const manifestSchema = z.object({
  /** Name of the batch. */
  name: z.string(),
  /** Id of the submission of a detached batch, whose results were fetched into the file. */
  detached: z.string().optional(),
  /** For tasks without a line in the results file: id → number of attempts that ended. */
  attempts: z.record(z.string(), z.number()).default({}),
  /** The newest 100 processes that drove the batch, in their order. */
  drivers: z.array(driverSchema).default([]),
  /** Where the tasks came from. Absent when a program gave them. */
  tasks: z
    .object({
      /** File of the tasks, or `-`. */
      file: z.string(),
      /** Number of tasks, without their repeats. */
      count: z.number(),
      /** `sha256:…` of the bytes of the file. */
      digest: z.string(),
    })
    .optional(),
  /** Options of the newest driver, without the spec. */
  options: z.record(z.string(), z.unknown()).default({}),
  /** The common spec as it was given. The values of secrets are replaced. */
  spec: z.record(z.string(), z.unknown()).optional(),
  /** Hosts of the fleet when the newest driver began. */
  hosts: z.array(hostSchema).default([]),
  /**
   * Images of the tasks' containers, 10,000 at most, by the name in the spec, `default` without one → digests,
   * `sha256:…`.
   */
  images: z.record(z.string(), z.array(z.string())).default({}),
  /**
   * Configuration of the fleet when the newest driver began: its revision, and its rules. Rules in the files of hosts
   * are not known here; those of the spec are in `spec`.
   */
  configuration: z.object({ revision: z.number(), rules: z.array(z.unknown()) }).optional(),
});

/** What ran a batch, and with what. */
export type BatchManifest = z.infer<typeof manifestSchema>;
