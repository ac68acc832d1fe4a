import type { ErrorCode } from '@shellfleet/protocol';
import { HttpProblem } from '../problems/http-problem.ts';
import { PROBLEM_TYPE, toProblem } from '../problems/to-problem.ts';
import type { Route } from '../routes/route.ts';

type Json = Record<string, unknown>;

interface ProblemKind {
  meaning: string;
  /** Code of the example. */
  code: ErrorCode;
}

/** The errors that routes have in common, by status. */
const KINDS = {
  400: { meaning: 'The request is not valid; `context.issues` lists the fields.', code: 'COMMAND_INVALID' },
  401: { meaning: 'There is no key, or none that works.', code: 'UNAUTHORIZED' },
  403: { meaning: 'The key lacks the scope, or the fleet denies the request.', code: 'UNAUTHORIZED' },
  404: { meaning: 'It is not there, or belongs to another tenant.', code: 'SESSION_NOT_FOUND' },
  409: { meaning: 'Its present state does not allow the request.', code: 'SESSION_CONFLICT' },
  410: { meaning: 'It has expired.', code: 'RESULT_EXPIRED' },
  413: { meaning: 'The body is too large.', code: 'COMMAND_INVALID' },
  415: { meaning: 'The route reads no body of this media type.', code: 'COMMAND_INVALID' },
  416: { meaning: 'The file has no such range.', code: 'COMMAND_INVALID' },
  421: { meaning: 'The `Host` of the request is not one of this server.', code: 'UNAUTHORIZED' },
  422: { meaning: 'The request cannot be done as it is; `code` tells why.', code: 'IDEMPOTENCY_CONFLICT' },
  426: { meaning: 'The path is for WebSockets.', code: 'COMMAND_INVALID' },
  429: { meaning: 'The key makes too many requests, or its tenant has reached a quota.', code: 'QUOTA_EXCEEDED' },
  500: { meaning: 'The server failed.', code: 'INTERNAL' },
  503: { meaning: 'Redis or a host is out of reach, or this server stops.', code: 'QUEUE_UNAVAILABLE' },
} as const satisfies Record<number, ProblemKind>;
type ProblemStatus = keyof typeof KINDS;

/** Returns the replies about errors that a route can have, as references to the components below. */
export function problemReplies({ scope, params, body, problems = [] }: Route): Json {
  const statuses: ProblemStatus[] = [400, 401, 421, 429, 500, 503, ...problems];
  if (scope !== 'any') statuses.push(403);
  if (params !== undefined || body !== undefined) statuses.push(404, 409, 410);
  if (body !== undefined) statuses.push(413, 415, 422);
  const known = statuses.map((status) => [status, reference(String(status))]);
  return { ...Object.fromEntries(known), default: reference('default') };
}

/** Returns the components that the replies refer to. */
export function problemComponents(schema: Json): Json {
  const replies = Object.entries(KINDS).map(([status, { meaning, code }]) => {
    const example = toProblem(new HttpProblem(Number(status), code, meaning)).body;
    return [nameOf(status), { description: meaning, content: { [PROBLEM_TYPE]: { schema, example } } }];
  });
  const other = { description: 'Another error.', content: { [PROBLEM_TYPE]: { schema } } };
  return { ...Object.fromEntries(replies), [nameOf('default')]: other };
}

const nameOf = (status: string) => `Problem-${status}`;
const reference = (status: string) => ({ $ref: `#/components/responses/${nameOf(status)}` });
