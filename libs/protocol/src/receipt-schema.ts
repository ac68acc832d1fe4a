import { z } from 'zod';

const receiptPartSchema = z
  .object({
    step: z
      .enum(['slot', 'earlier', 'approval', 'image', 'opening', 'attempt', 'waiting', 'running', 'unknown', 'storing'])
      .meta({ description: 'What the time went into.' }),
    ms: z.number().meta({ description: 'Its length in ms.' }),
    clock: z
      .enum(['redis', 'host'])
      .meta({ description: "The clock that measured it: that of Redis, or that of the command's host." }),
  })
  .meta({ id: 'ReceiptPart', description: 'A part of the time of a command.' });

/** Where the time of a command went, as a caller gets it. */
export const receiptSchema = z
  .object({
    acceptedAt: z.string().meta({ description: 'When the command was accepted; ISO 8601, by the clock of Redis.' }),
    startedAt: z
      .string()
      .exactOptional()
      .meta({ description: 'When it was started last; ISO 8601, by the clock of Redis. Absent if it never was.' }),
    storedAt: z.string().meta({ description: 'When its Result was stored; ISO 8601, by the clock of Redis.' }),
    totalMs: z
      .number()
      .meta({ description: 'Time in ms from its acceptance until its Result was stored, by the clock of Redis.' }),
    firstOutputMs: z
      .number()
      .exactOptional()
      .meta({
        description:
          'Time in ms from its start on the host to its first output, by the clock of the host. Absent if it ' +
          'had no output, or if its worker was replaced while it ran.',
      }),
    parts: z.array(receiptPartSchema).meta({
      description:
        'The parts of that time, in their order, without those of 0 ms. Their sum is `totalMs`, but for ' + 'rounding.',
    }),
  })
  .meta({
    id: 'Receipt',
    description: 'Where the time of a command went, from its acceptance until its Result was stored.',
  });
