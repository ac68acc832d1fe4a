import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startWebhookReceiver, type WebhookReceiver } from '../../test-support/webhook-receiver.ts';
import { sendAnnouncement } from './send-announcement.ts';

const SECRET = 'a secret that both sides have, of 40 chars';
const AT = 1_790_000_000_999;
const never = new AbortController().signal;

let receiver: WebhookReceiver;
beforeEach(async () => {
  receiver = await startWebhookReceiver();
});
afterEach(() => receiver[Symbol.asyncDispose]());

const urlOf = (rest: string, port = receiver.port) => new URL(`http://${rest.replace('HOST', `127.0.0.1:${port}`)}`);
const send = (url: URL, signal = never) => sendAnnouncement({ url, secret: SECRET }, '{"é":1}', AT, signal);

describe('an announcement', () => {
  test('arrives with a signature of its body and time', async () => {
    expect(await send(urlOf('HOST/questions?token=t'))).toBeUndefined();
    const hmac = createHmac('sha256', SECRET).update('1790000000.{"é":1}').digest('hex');
    expect(receiver.received).toEqual([
      {
        path: '/questions?token=t',
        body: '{"é":1}',
        headers: expect.objectContaining({
          'content-type': 'application/json',
          'shellfleet-signature': `t=1790000000,v1=${hmac}`,
        }),
      },
    ]);
    expect(receiver.received[0]?.headers.authorization).toBeUndefined();
  });

  test('sends the credentials of the address as basic authentication', async () => {
    expect(await send(urlOf('fleet:p%40ss@HOST/'))).toBeUndefined();
    const { authorization = '' } = receiver.received[0]?.headers ?? {};
    expect(Buffer.from(authorization.replace('Basic ', ''), 'base64').toString()).toBe('fleet:p@ss');
  });

  test.each([301, 302, 307, 308])('fails at a redirect with %i instead of following it', async (status) => {
    receiver.status = status;
    receiver.headers = { location: `http://127.0.0.1:${receiver.port}/elsewhere` };
    expect(await send(urlOf('HOST/'))).toBe(`it answered with ${status}`);
    expect(receiver.received.map(({ path }) => path)).toEqual(['/']);
  });

  test('describes a failed request without its address', async () => {
    receiver.status = 500;
    expect(await send(urlOf('u:p@HOST/secret?token=t'))).toBe('it answered with 500');
    receiver.status = undefined;
    expect(await send(urlOf('u:p@HOST/secret?token=t'), AbortSignal.timeout(50))).toBe('it did not answer in time');
    expect(await send(urlOf('u:p@HOST/secret?token=t', 1))).toMatch(
      /^(it cannot be reached \(ECONNREFUSED\)|the request failed)$/,
    );
  });
});
