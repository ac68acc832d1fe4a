import { HttpProblem } from '../problems/http-problem.ts';

/** Throws if a request expects more than `100-continue`, to which Node replies. */
export function requireKnownExpectation(header: string | undefined): void {
  if (header === undefined || header.toLowerCase() === '100-continue') return;
  const message = 'The server meets no expectation but 100-continue. Repeat the request without its header Expect.';
  throw new HttpProblem(417, 'COMMAND_INVALID', message);
}
