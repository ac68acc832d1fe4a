import { parseDurationText } from '@shellfleet/protocol';
import { z } from 'zod';

const DAY_MS = 86_400_000;
const LEAST_MS = 3_600_000;
const MOST_MS = 3_660 * DAY_MS;
const MIB = 1024 * 1024;
const LEAST_BYTES = MIB;

/** `audit:`, records of this host about commands and approvals. */
export const auditSchema = z.strictObject(
  {
    retention: z
      .string('must be a time such as 90d')
      .transform((text) => parseDurationText(text) ?? Number.NaN)
      .pipe(
        z
          .number('must be a time such as 90d')
          .min(LEAST_MS, 'must be at least 1h')
          .max(MOST_MS, 'must be at most 3660d'),
      )
      .default(90 * DAY_MS)
      .describe('How long records are kept'),
    commands: z
      .boolean('must be true or false')
      .default(true)
      .describe('Whether submissions, starts and ends are recorded; decisions, answers and refusals always are'),
    store: z
      .enum(['file', 'redis'], 'must be file or redis')
      .optional()
      .describe(
        'Where records are: on the disk of this host, or in Redis; default: redis for a host that offers only `kubernetes`, else file',
      ),
    maxBytes: z
      .int('must be a whole number of bytes')
      .min(LEAST_BYTES, 'must be at least 1048576')
      .default(256 * MIB)
      .describe('Bytes of the records of all workers in Redis; over it the oldest go before their time'),
  },
  'must have only these fields: retention, commands, store, maxBytes',
);
