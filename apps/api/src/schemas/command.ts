import { LIMITS, resultSchema, runDataSchema, scriptSchema, sessionSpecSchema } from '@shellfleet/protocol';
import { z } from 'zod';

const base64 = z.base64('must be base64');
const tooLong = `must be at most ${LIMITS.stdinBytes} bytes; open the stdin and send it in parts`;
const fits = (bytes: number) => bytes <= LIMITS.stdinBytes;

const stdinSchema = z
  .union(
    [
      z.string().refine((text) => fits(Buffer.byteLength(text)), tooLong),
      z.strictObject({ base64: base64.refine((text) => fits(Buffer.byteLength(text, 'base64')), tooLong) }),
      z.strictObject({ open: z.literal(true) }),
    ],
    'must be a string, { base64 } or { open: true }',
  )
  .meta({
    description:
      'Standard input, at most 1 MiB. `{ open: true }`: `POST /v1/commands/{id}/stdin` supplies it while the command runs.',
  });

/** The script and the options of a command, and the spec with which its session is opened, if it is not open yet. */
export const commandBodySchema = z
  .strictObject({
    script: scriptSchema,
    ...runDataSchema.shape,
    stdin: stdinSchema.optional(),
    spec: sessionSpecSchema.optional(),
  })
  .meta({ id: 'CommandRequest' });

export type CommandBody = z.input<typeof commandBodySchema>;

export const acceptedSchema = z
  .object({
    id: z.string().describe('Id of the command.'),
    sessionId: z.string(),
    deduplicated: z.boolean().describe('Whether the `Idempotency-Key` found an earlier command.'),
  })
  .meta({ id: 'AcceptedCommand' });

export const commandInfoSchema = z
  .object({
    id: z.string(),
    sessionId: z.string(),
    state: z.enum(['queued', 'running', 'ended']),
    result: resultSchema.optional().describe('How it ended. Absent before its end.'),
  })
  .meta({ id: 'CommandInfo' });

/** Returns the stdin of a body as the SDK takes it. */
export function toStdin(stdin: CommandBody['stdin']): string | Uint8Array | { open: true } | undefined {
  if (typeof stdin !== 'object' || 'open' in stdin) return stdin;
  return Buffer.from(stdin.base64, 'base64');
}
