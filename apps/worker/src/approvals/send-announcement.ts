import { createHmac } from 'node:crypto';
import { ANNOUNCEMENT_SIGNATURE_HEADER } from '@shellfleet/protocol';

/** Where questions are announced, as the operator has configured it. */
export interface Webhook {
  url: URL;
  /** Key of the signatures, which the receiver has too. */
  secret: string;
}

/**
 * Sends one announcement, which is signed with the time `at` (ms). Resolves with undefined when the receiver has taken
 * it (2xx), else with the problem in words. They hold nothing of the address: its path and its query may be secrets.
 */
export async function sendAnnouncement(
  { url, secret }: Webhook,
  body: string,
  at: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  // `fetch` refuses an address with a user and a password.
  const { username, password } = url;
  const address = new URL(url);
  address.username = '';
  address.password = '';
  try {
    const response = await fetch(address, {
      method: 'POST',
      // A redirect would send the question where nobody has agreed to.
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'user-agent': 'shellfleet',
        [ANNOUNCEMENT_SIGNATURE_HEADER]: signatureOf(body, secret, at),
        ...(username === '' && password === '' ? {} : { authorization: basicOf(username, password) }),
      },
      body,
      signal,
    });
    // Nothing of the answer matters, however long it is.
    await response.body?.cancel();
    return response.ok ? undefined : `it answered with ${response.status}`;
  } catch (error) {
    return describeProblem(error);
  }
}

function signatureOf(body: string, secret: string, at: number): string {
  const seconds = Math.floor(at / 1_000);
  return `t=${seconds},v1=${createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')}`;
}

function basicOf(username: string, password: string): string {
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString('base64')}`;
}

/** Describes an error by what surely holds no address: its name and its code. */
function describeProblem(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  if (error.name === 'TimeoutError') return 'it did not answer in time';
  const { cause } = error;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^[A-Z_0-9]+$/.test(code)
    ? `it cannot be reached (${code})`
    : 'the request failed';
}
