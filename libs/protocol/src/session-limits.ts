import { z } from 'zod';
import { DEFAULTS } from './defaults.ts';
import { LIMITS } from './limits.ts';

const wholePositive = (maximum: number, otherwise = 'must be positive') =>
  z
    .number('must be a number')
    .int('must be a whole number')
    .min(1, otherwise)
    .max(maximum, `must be at most ${maximum}`);

export const outputSchema = z
  .strictObject(
    {
      maxBytes: wholePositive(LIMITS.outputBytes)
        .default(DEFAULTS.output.maxBytes)
        .meta({ description: 'Bytes of each stream in the Result.', limit: '1 to 1,048,576 bytes (1 MiB)' }),
      maxLines: wholePositive(LIMITS.outputLines)
        .default(DEFAULTS.output.maxLines)
        .meta({ description: 'Lines of each stream in the Result.', limit: '1 to 1,000,000 lines' }),
      keep: z
        .enum(['head', 'tail', 'head-tail'], "must be 'head', 'tail' or 'head-tail'")
        .default(DEFAULTS.output.keep)
        .meta({ description: 'The part of a longer output that the Result keeps.' }),
      streamBytes: wholePositive(LIMITS.streamBytes)
        .default(DEFAULTS.output.streamBytes)
        .meta({
          description:
            "Output bytes of each command that the session's stream carries. Further bytes are counted, and are " +
            'in the full log.',
          limit: '1 to 67,108,864 bytes (64 MiB)',
        }),
    },
    'must be an object of bounds: maxBytes, maxLines, keep, streamBytes',
  )
  .meta({
    id: 'OutputOptions',
    description:
      'Bounds of the output of each command of a session. Output that is cut is counted and marked, and ' +
      'the full log has it.',
  });

export const limitsSchema = z
  .strictObject(
    {
      memoryBytes: z
        .number('must be a number of bytes')
        .int('must be a whole number of bytes')
        .min(1, { error: 'must be positive if provided', abort: true })
        .min(33_554_432, 'must be at least 33554432 bytes (32 MiB)')
        .max(2 ** 50, 'must be at most 2^50 bytes')
        .optional()
        .meta({
          description: 'Memory of all processes in bytes, including the pages of `/tmp` and `/dev/shm`.',
          otherwise: DEFAULTS.limits.memoryBytes,
          limit: '33,554,432 (32 MiB) to 2^50 bytes',
          flag: 'memory limit: 512m, 1g',
        }),
      cpus: z
        .number('must be a number')
        .min(0.01, 'must be at least 0.01')
        .max(1_024, 'must be at most 1024')
        .optional()
        .meta({
          description: 'Processors that the sandbox may keep busy; fractions are allowed.',
          otherwise: DEFAULTS.limits.cpus,
          limit: '0.01 to 1,024',
          flag: 'processors, such as 0.5 or 2',
        }),
      pids: z
        .number('must be a number')
        .int('must be a whole number')
        .min(16, 'must be at least 16')
        .max(65_536, 'must be at most 65536')
        .optional()
        .meta({
          description:
            'Processes and threads at once. Under the policy `kubernetes` the kubelet bounds them, and no ' +
            'default applies.',
          otherwise: DEFAULTS.limits.pids,
          limit: '16 to 65,536',
          flag: 'most processes',
        }),
      cpuTimeSeconds: wholePositive(2 ** 31 - 1, 'must be positive if provided')
        .optional()
        .meta({
          description: 'Processor time in seconds of each process. Only under the policy `host`.',
          otherwise: 'no limit',
          limit: '1 to 2,147,483,647 s',
        }),
      diskBytes: wholePositive(2 ** 50, 'must be positive if provided')
        .optional()
        .meta({
          description:
            "Bytes of the sandbox's files. Only on a host whose storage driver has quotas, and refused under " +
            "the policy `host`. Under `kubernetes` it is the Pod's ephemeral storage, and a Pod that exceeds it " +
            'is evicted.',
          otherwise: 'no quota; the host ends what fills its disk',
          limit: '1 to 2^50 bytes',
        }),
      fileSizeBytes: wholePositive(2 ** 50, 'must be positive if provided')
        .min(LIMITS.leastFileSizeBytes, `must be at least ${LIMITS.leastFileSizeBytes} bytes (16 MiB)`)
        .optional()
        .meta({
          description:
            'Bytes of each written file. A longer write fails, and ends a program that does not handle SIGXFSZ.',
          otherwise: 'no limit',
          limit: '16,777,216 (16 MiB) to 2^50 bytes',
        }),
      resources: z
        .record(
          z.string().regex(/^[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?\/[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/),
          wholePositive(LIMITS.resourceCount),
          {
            error: ({ code }) =>
              code === 'invalid_key' ? "must be the name of a resource, such as 'nvidia.com/gpu'" : 'must be an object',
          },
        )
        .refine(
          (resources) => Object.keys(resources).length <= LIMITS.resources,
          `must hold at most ${LIMITS.resources} resources`,
        )
        .optional()
        .meta({
          description:
            "Other resources of a Kubernetes cluster, such as `{ 'nvidia.com/gpu': 1 }`, which the operator " +
            'must allow. Only under the policy `kubernetes`.',
          otherwise: 'none',
          limit: '8 resources of 1 to 1,024 each',
        }),
    },
    'must be an object of limits: memoryBytes, cpus, pids, cpuTimeSeconds, diskBytes, fileSizeBytes, resources',
  )
  .meta({
    id: 'LimitOptions',
    description:
      'Resources of a sandbox. A host refuses what it cannot enforce. Only the policies `docker` and ' +
      '`kubernetes` have defaults.',
  });

export function withDefaultLimits(limits: z.infer<typeof limitsSchema>) {
  const { memoryBytes, cpus, pids } = DEFAULTS.limits;
  return {
    ...limits,
    memoryBytes: limits.memoryBytes ?? memoryBytes,
    cpus: limits.cpus ?? cpus,
    pids: limits.pids ?? pids,
  };
}
