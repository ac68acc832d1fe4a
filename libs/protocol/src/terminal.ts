import { z } from 'zod';

/** Time after which a terminal expires if its user has made no call, by the clock of Redis. */
export const TERMINAL_TTL_MS = 30_000;
/** Interval of the heartbeats of a terminal's user. */
export const TERMINAL_BEAT_MS = 5_000;
/** The most messages that may wait in each direction. */
export const TERMINAL_MESSAGES = 64;
/** The most bytes that one message carries. */
export const TERMINAL_MESSAGE_BYTES = 16_384;

export const terminalIdSchema = z.string().regex(/^[0-9A-HJKMNP-TV-Z]{26}$/);

const side = z.int('must be a whole number').min(1, 'must be at least 1').max(10_000, 'must be at most 10000');
export const terminalSizeSchema = z.object({ rows: side, columns: side });
export type TerminalSize = z.infer<typeof terminalSizeSchema>;

/** Request to open a terminal, as its producer signs it. It comes before the first message of the terminal. */
export const terminalStartSchema = z.strictObject({
  generation: z.string(),
  ...terminalSizeSchema.shape,
  term: z.string().regex(/^[A-Za-z0-9._+-]{1,64}$/),
});
export type TerminalStart = z.infer<typeof terminalStartSchema>;

/** Bytes of a message, encoded as the characters U+0000 to U+00FF. */
const bytesSchema = z.string().max(TERMINAL_MESSAGE_BYTES);

/** A message of a terminal's user. `from` is the number of input bytes that were sent before this message. */
export const terminalInputMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('input'), from: z.int().min(0), data: bytesSchema }),
  z.object({ type: z.literal('resize'), ...terminalSizeSchema.shape }),
  z.object({ type: z.literal('close') }),
]);
export type TerminalInputMessage = z.infer<typeof terminalInputMessageSchema>;

/** How a terminal ended: its shell ended, it was hung up, a rule blocked its output, or its sandbox was lost. */
export const terminalEndSchema = z.object({
  reason: z.enum(['exited', 'signalled', 'hung-up', 'blocked', 'lost']),
  exitCode: z.int().nullable(),
  signal: z.int().nullable(),
});
export type WireTerminalEnd = z.infer<typeof terminalEndSchema>;

/** A message to a terminal's user: its output, and last its end. */
export const terminalOutputMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('output'), data: bytesSchema }),
  z.object({ type: z.literal('end'), ...terminalEndSchema.shape }),
]);
export type TerminalOutputMessage = z.infer<typeof terminalOutputMessageSchema>;

export const toTerminalText = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
export const fromTerminalText = (text: string) => Buffer.from(text, 'latin1');
