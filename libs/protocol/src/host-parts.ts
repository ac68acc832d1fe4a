import { z } from 'zod';

/** What decides whether a host with a free slot takes a further session, as of its last heartbeat. */
export interface HostGate {
  /** Why the host would take no further session now. `null` when it would. */
  reason: string | null;
  /** When the host last took no session in spite of a free slot (ISO 8601), and why. `null` if it never did. */
  refusal: { at: string; reason: string } | null;
  /** Sessions that are being opened, or wait on the host for that. */
  opening: number;
  /** Memory that programs could use without swapping. */
  freeMemoryBytes: number;
  /** Memory that the host keeps free. It keeps more while the kernel has killed processes for it not long ago. */
  leastMemoryBytes: number;
  /** Memory that the host counts for each session that is being opened. */
  sessionBytes: number;
  /** When the kernel last killed processes because the host's memory ran out (ISO 8601). `null` if it never did. */
  ranOutAt: string | null;
  /** Free space on the disk of the state directory. `null` if it cannot be read. */
  freeDiskBytes: number | null;
  /** Percentage of the last 10 s in which all processes waited for memory. `null` if the kernel does not measure it. */
  memoryPressure: number | null;
  /** The same for the disks, of the last minute. */
  ioPressure: number | null;
}

export const hostGateSchema = z
  .object({
    reason: z
      .string()
      .nullable()
      .meta({ description: 'Why the host would take no further session now. `null` when it would.' }),
    refusal: z
      .object({ at: z.string(), reason: z.string() })
      .nullable()
      .meta({
        description:
          'When the host last took no session in spite of a free slot (ISO 8601), and why. `null` if it never ' +
          'did.',
      }),
    opening: z.number().meta({ description: 'Sessions that are being opened, or wait on the host for that.' }),
    freeMemoryBytes: z.number().meta({ description: 'Memory that programs could use without swapping.' }),
    leastMemoryBytes: z.number().meta({
      description:
        'Memory that the host keeps free. It keeps more while the kernel has killed processes for it not ' +
        'long ago.',
    }),
    sessionBytes: z
      .number()
      .meta({ description: 'Memory that the host counts for each session that is being opened.' }),
    ranOutAt: z
      .string()
      .nullable()
      .meta({
        description:
          "When the kernel last killed processes because the host's memory ran out (ISO 8601). `null` if it " +
          'never did.',
      }),
    freeDiskBytes: z
      .number()
      .nullable()
      .meta({ description: 'Free space on the disk of the state directory. `null` if it cannot be read.' }),
    memoryPressure: z
      .number()
      .nullable()
      .meta({
        description:
          'Percentage of the last 10 s in which all processes waited for memory. `null` if the kernel does ' +
          'not measure it.',
      }),
    ioPressure: z.number().nullable().meta({ description: 'The same for the disks, of the last minute.' }),
  })
  .meta({
    id: 'HostGate',
    description: 'What decides whether a host with a free slot takes a further session, as of its last heartbeat.',
  });

/** Pull of an image that runs on a host. The total grows while the engine learns of more layers. */
export interface RunningPull {
  /** Whole name of the image. */
  image: string;
  /** Bytes of its layers that the engine has downloaded. */
  doneBytes: number;
  /** Bytes of the layers that the engine knows of so far. */
  totalBytes: number;
}

export const runningPullSchema = z
  .object({
    image: z.string().meta({ description: 'Whole name of the image.' }),
    doneBytes: z.number().meta({ description: 'Bytes of its layers that the engine has downloaded.' }),
    totalBytes: z.number().meta({ description: 'Bytes of the layers that the engine knows of so far.' }),
  })
  .meta({
    id: 'RunningPull',
    description: 'Pull of an image that runs on a host. The total grows while the engine learns of more layers.',
  });

/** Image on a host. */
export interface HostImage {
  /** Name of the image, with its tag. */
  image: string;
  /** `sha256:…`, the digest of the image's configuration. */
  digest: string;
  /** Size of all its layers. Other images may share some of them. */
  bytes: number;
  /** Whether the host pulled it. It never removes any other image. */
  isPulled: boolean;
  /** Whether a container has it. */
  inUse: boolean;
  /** Whether the host always keeps it: its default image, and what it pulls in advance. */
  pinned: boolean;
  /** Time of its last use or of its pull; ISO 8601. Absent unless the host pulled it. */
  usedAt?: string | undefined;
}

export const hostImageSchema = z
  .object({
    image: z.string().meta({ description: 'Name of the image, with its tag.' }),
    digest: z.string().meta({ description: "`sha256:…`, the digest of the image's configuration." }),
    bytes: z.number().meta({ description: 'Size of all its layers. Other images may share some of them.' }),
    isPulled: z.boolean().meta({ description: 'Whether the host pulled it. It never removes any other image.' }),
    inUse: z.boolean().meta({ description: 'Whether a container has it.' }),
    pinned: z
      .boolean()
      .meta({ description: 'Whether the host always keeps it: its default image, and what it pulls in advance.' }),
    usedAt: z
      .string()
      .optional()
      .meta({ description: 'Time of its last use or of its pull; ISO 8601. Absent unless the host pulled it.' }),
  })
  .meta({ id: 'HostImage', description: 'Image on a host.' });

/** Pool of sandboxes whose shells are ready before a session asks. The counts begin with the worker. */
export interface HostPool {
  /** Image of the sandboxes, as the host's configuration names it. */
  image: string;
  /** Network of the sandboxes. */
  network: string;
  /** Fewest sandboxes that the host keeps ready while no session waits. */
  min: number;
  /** Most sandboxes that the host keeps ready. */
  max: number;
  /** Sandboxes that are ready. */
  ready: number;
  /** Sessions that asked for one of the sandboxes. */
  asked: number;
  /** Sessions among these that got one. */
  warm: number;
  /** `warm` as a part of `asked`, from 0 to 1. `null` before the first session. */
  hitRate: number | null;
  /** Time for which the oldest sandbox has been ready, in ms. `null` when none is. */
  oldestMs: number | null;
  /** Why the last sandbox could not be made. `null` when it could. */
  problem: string | null;
}

export const hostPoolSchema = z
  .object({
    image: z.string().meta({ description: "Image of the sandboxes, as the host's configuration names it." }),
    network: z.string().meta({ description: 'Network of the sandboxes.' }),
    min: z.number().meta({ description: 'Fewest sandboxes that the host keeps ready while no session waits.' }),
    max: z.number().meta({ description: 'Most sandboxes that the host keeps ready.' }),
    ready: z.number().meta({ description: 'Sandboxes that are ready.' }),
    asked: z.number().meta({ description: 'Sessions that asked for one of the sandboxes.' }),
    warm: z.number().meta({ description: 'Sessions among these that got one.' }),
    hitRate: z
      .number()
      .nullable()
      .meta({ description: '`warm` as a part of `asked`, from 0 to 1. `null` before the first session.' }),
    oldestMs: z
      .number()
      .nullable()
      .meta({ description: 'Time for which the oldest sandbox has been ready, in ms. `null` when none is.' }),
    problem: z
      .string()
      .nullable()
      .meta({ description: 'Why the last sandbox could not be made. `null` when it could.' }),
  })
  .meta({
    id: 'HostPool',
    description: 'Pool of sandboxes whose shells are ready before a session asks. The counts begin with the worker.',
  });
