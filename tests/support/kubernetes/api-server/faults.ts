import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { internalError } from './status.ts';

/** Request that the server has seen. */
export interface SeenRequest {
  /** Verb of the access rules, such as `list`. */
  verb: string;
  method: string;
  /** Path with its query. */
  path: string;
  /** Resource with its subresource, such as `pods/log`. Empty for paths without objects. */
  resource: string;
  namespace?: string | undefined;
  name: string;
  user: string;
  /** HTTP status of the reply. Undefined until it has begun. */
  code?: number | undefined;
}

/**
 * What happens to a request instead of its answer: it hangs, its connection breaks, or it is refused. Too many requests
 * are refused in plain text, as the real server does.
 */
export type Fault = 'hang' | 'reset' | { code: 429; retryAfterSeconds?: number } | { code: 500 | 503 };

export type Filter = (request: SeenRequest) => boolean;

/** Faults that tests have ordered for the next requests. */
export class Faults {
  readonly #ordered: { left: number; fault: Fault; filter: Filter }[] = [];
  delayMs = 0;

  order(count: number, fault: Fault, filter: Filter): void {
    this.#ordered.push({ left: count, fault, filter });
  }

  clear(): void {
    this.#ordered.length = 0;
    this.delayMs = 0;
  }

  /** Delays a request, and answers it if a fault is ordered for it. Returns true if it has. */
  async meet(request: SeenRequest, response: ServerResponse): Promise<boolean> {
    const order = this.#ordered.find(({ left, filter }) => left > 0 && filter(request));
    if (order) order.left -= 1;
    if (this.delayMs > 0) await delay(this.delayMs);
    if (!order) return false;
    const { fault } = order;
    if (fault === 'reset') response.destroy();
    else if (fault !== 'hang') refuse(response, fault);
    return true;
  }
}

function refuse(response: ServerResponse, fault: Exclude<Fault, string>): void {
  if (fault.code === 429) {
    const headers = {
      'content-type': 'text/plain; charset=utf-8',
      'retry-after': String(fault.retryAfterSeconds ?? 1),
    };
    response.writeHead(429, headers).end('Too many requests, please try again later.\n');
    return;
  }
  const body = { ...internalError('etcdserver: request timed out').body, code: fault.code };
  response.writeHead(fault.code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
