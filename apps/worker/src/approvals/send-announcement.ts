import { createHmac } from 'node:crypto';
import { ANNOUNCEMENT_SIGNATURE_HEADER } from '@shellfleet/protocol';

export interface Webhook {
  url: URL;
  /** Key of the signatures, which the receiver shares. */
  secret: string;
}

/** Sends a signed announcement. Unless the receiver accepts it (2xx), returns the problem, without its address. */
export async function sendAnnouncement(
  { url, secret }: Webhook,
  body: string,
  at: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  // `fetch` refuses a URL with credentials.
  const { username, password } = url;
  const address = new URL(url);
  address.username = '';
  address.password = '';
  try {
    const response = await fetch(address, {
      method: 'POST',
      // A redirect could send the question to a place that nobody approved.
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
    // The body is irrelevant, and may be long.
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

/** Describes an error by its name and code, which cannot contain the address. */
function describeProblem(error: unknown): string {
  if (!(error instanceof Error)) return 'the request failed';
  if (error.name === 'TimeoutError') return 'it did not answer in time';
  const { cause } = error;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  return typeof code === 'string' && /^[A-Z_0-9]+$/.test(code)
    ? `it cannot be reached (${code})`
    : 'the request failed';
}
