import { tryJson } from '@shellfleet/protocol';
import { z } from 'zod';

/** The fields of a `Status`, with which the API server refuses a call, that are read here. */
export const statusSchema = z.object({
  kind: z.literal('Status'),
  code: z.number().int().optional(),
  reason: z.string().optional(),
  message: z.string().optional(),
  details: z.object({ retryAfterSeconds: z.number().nonnegative().optional() }).nullish(),
});

type Status = z.infer<typeof statusSchema>;

/** Refusal of a call by the API server. */
export class ApiRefusal extends Error {
  override name = 'ApiRefusal';
  readonly statusCode: number;
  /** Machine-readable word, such as `AlreadyExists`; empty if the reply has none. */
  readonly reason: string;
  /** Time after which the server asks for another attempt, if it asks for one. */
  readonly retryAfterMs: number | undefined;

  constructor(statusCode: number, { reason = '', message, details }: Partial<Status>, retryAfter?: string) {
    super(message ?? `the API server replied with status ${statusCode}`);
    this.statusCode = statusCode;
    this.reason = reason;
    const seconds = retryAfter === undefined ? details?.retryAfterSeconds : Number(retryAfter);
    this.retryAfterMs = seconds === undefined || !Number.isFinite(seconds) ? undefined : Math.max(0, seconds * 1_000);
  }
}

/** Failure to get a reply: no connection, a wrong certificate, a missing file, a deadline. */
export class ApiUnreachable extends Error {
  override name = 'ApiUnreachable';
}

/** Returns the refusal in a reply. What is in front of an API server may reply with text that is no `Status`. */
export function toRefusal(statusCode: number, body: string, retryAfter: string | undefined): ApiRefusal {
  return new ApiRefusal(statusCode, statusSchema.safeParse(tryJson(body)).data ?? {}, retryAfter);
}

export const isNoObject = (error: unknown): boolean => isRefusal(error, 404);
/** Tells whether an object of this name exists. The server also replies with 409 when a write meets another one. */
export const isAlreadyThere = (error: unknown): boolean => isRefusal(error, 409, 'AlreadyExists');
/** Tells whether the server no longer has the changes since a version, or the rest of a list. */
export const isExpired = (error: unknown): boolean => isRefusal(error, 410);
export const isUnauthorized = (error: unknown): boolean => isRefusal(error, 401);

function isRefusal(error: unknown, statusCode: number, reason?: string): boolean {
  if (!(error instanceof ApiRefusal) || error.statusCode !== statusCode) return false;
  return reason === undefined || error.reason === reason;
}
