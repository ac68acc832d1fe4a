import { type ErrorCode, ShellfleetError } from '@shellfleet/protocol';

/** An error whose status is not that of its code, or that has headers of its own. */
export class HttpProblem extends ShellfleetError {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    status: number,
    code: ErrorCode,
    message: string,
    options: { headers?: Record<string, string>; context?: Record<string, unknown>; retryable?: boolean } = {},
  ) {
    const { headers = {}, context = {}, retryable } = options;
    super(code, message, context, retryable === undefined ? {} : { retryable });
    this.status = status;
    this.headers = headers;
  }
}

/** Returns the problem of a request without a key that works. The text does not tell what is wrong with the key. */
export function unauthenticated(): HttpProblem {
  const message = 'Give an API key that works: Authorization: Bearer <key>.';
  return new HttpProblem(401, 'UNAUTHORIZED', message, { headers: { 'www-authenticate': 'Bearer' } });
}

/** Returns the problem of every request, and of every wait, while the server stops. */
export function stopping(): HttpProblem {
  const message = 'This server stops. Repeat the request, which another server answers.';
  return new HttpProblem(503, 'QUEUE_UNAVAILABLE', message, {
    headers: { 'retry-after': '1', connection: 'close' },
    retryable: true,
  });
}
