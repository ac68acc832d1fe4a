import type { IncomingMessage } from 'node:http';
import type { Access } from '@shellfleet/access';
import { ShellfleetError } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { admitRequest } from './admit-request.ts';

describe('a caller whose key cannot be checked', () => {
  test('learns nothing about Redis and issuer', async () => {
    const message = 'Redis at redis.internal:6379 does not answer.';
    const authenticate = () => Promise.reject(new ShellfleetError('QUEUE_UNAVAILABLE', message));
    const request = { url: '/mcp', headers: { host: '127.0.0.1', authorization: 'Bearer x' } } as IncomingMessage;
    const http = { host: '127.0.0.1', port: 0, insecureHttp: false, allowedHosts: [] };
    expect(await admitRequest(request, { authenticate } as unknown as Access, http)).toEqual({
      ...{ status: 503, code: 'QUEUE_UNAVAILABLE' },
      message: 'Keys cannot be checked now. Repeat the request.',
    });
  });
});
