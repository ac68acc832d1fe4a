import { STATUS_CODES } from 'node:http';
import { type ErrorCode, isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { z } from 'zod';
import { HttpProblem } from './http-problem.ts';
import { STATUSES } from './statuses.ts';

export const PROBLEM_TYPE = 'application/problem+json';
/** Seconds after which a client may repeat a request that failed for a reason that passes. */
const RETRY_AFTER_S: Partial<Record<number, string>> = { 429: '1', 503: '1' };

/** The body of every reply that reports an error. */
export const problemSchema = z
  .object({
    type: z.string().describe('`urn:shellfleet:error:` and the code.'),
    title: z.string().describe("The caller's next step, or the name of the status."),
    status: z.number().int().describe('Status of the reply.'),
    detail: z.string().describe('A sentence for a person.'),
    code: z.string().describe('A code of docs/errors.md.'),
    retryable: z.boolean().describe('Whether the same request may succeed later.'),
    context: z.record(z.string(), z.unknown()).optional().describe('Details for a program, by code.'),
  })
  .meta({ id: 'Problem', description: 'An error, as of RFC 9457.' });

export interface ProblemReply {
  status: number;
  headers: Record<string, string>;
  body: z.infer<typeof problemSchema>;
}

/** Returns the reply to an error. Nothing about an unknown error leaves the server. */
export function toProblem(thrown: unknown): ProblemReply {
  const error = toError(thrown);
  const { code, message, retryable, context, hint } = error;
  const status = error instanceof HttpProblem ? error.status : STATUSES[code];
  // The hint of a code is about the SDK, which has no keys, paths and methods of HTTP. That of UNAUTHORIZED is about
  // signatures alone, and here it may be the caller's own question.
  const title = error instanceof HttpProblem || code === 'UNAUTHORIZED' ? (STATUS_CODES[status] ?? hint) : hint;
  const again = retryable ? RETRY_AFTER_S[status] : undefined;
  return {
    status,
    headers: {
      ...(again === undefined ? {} : { 'retry-after': again }),
      ...(error instanceof HttpProblem ? error.headers : {}),
    },
    body: {
      ...{ type: `urn:shellfleet:error:${code}`, title, status, detail: message, code, retryable },
      ...(Object.keys(context).length === 0 ? {} : { context }),
    },
  };
}

function toError(thrown: unknown): ShellfleetError {
  if (isShellfleetError(thrown) && thrown.code !== 'INTERNAL') return thrown;
  const { statusCode } = (thrown ?? {}) as { statusCode?: unknown };
  // Fastify's own errors about a request have such a status. Their messages are about the request alone.
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 && thrown instanceof Error)
    return new HttpProblem(
      statusCode,
      CODES[statusCode] ?? 'COMMAND_INVALID',
      MESSAGES[statusCode] ?? `${thrown.message}.`,
    );
  return new ShellfleetError('INTERNAL', 'The server failed. Its log has the request id.');
}

const CODES: Partial<Record<number, ErrorCode>> = { 429: 'QUOTA_EXCEEDED' };
/** Messages in place of those of Fastify that do not tell what to do. */
const MESSAGES: Partial<Record<number, string>> = {
  415: 'This path does not read a body of that media type. Send JSON with Content-Type: application/json (curl --json).',
};
