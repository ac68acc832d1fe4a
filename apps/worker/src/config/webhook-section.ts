import { readFileSync } from 'node:fs';
import { z } from 'zod';

// `approvals.webhook:`, where questions are announced. No message here repeats the address or the secret.

const LEAST_SECRET_CHARS = 32;

const urlSchema = z.string('must be a URL').transform((text, context): URL => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'https:' || url?.protocol === 'http:') return url;
  context.addIssue({ code: 'custom', message: 'must be an https:// URL' });
  return z.NEVER;
});

const secretSchema = z
  .string('must be a path')
  .startsWith('/', 'must be an absolute path')
  .transform((path, context): string => {
    const secret = read(path);
    if (secret instanceof Error) context.addIssue({ code: 'custom', message: `cannot be read: ${secret.message}` });
    else if (secret.length < LEAST_SECRET_CHARS)
      context.addIssue({ code: 'custom', message: `must name a file with at least ${LEAST_SECRET_CHARS} characters` });
    else return secret;
    return z.NEVER;
  });

export const webhookSchema = z
  .strictObject(
    {
      url: urlSchema.describe(
        'Gets a POST with each question; a user and a password in it are sent as basic authentication',
      ),
      secretFile: secretSchema.describe('A file with what signs each request, shared with the receiver'),
      plainHosts: z
        .array(z.string('must be a string').toLowerCase(), 'must be a list of hosts')
        .default([])
        .describe('Hosts that may be reached without TLS, beside this machine'),
    },
    'must have only these fields: url, secretFile, plainHosts',
  )
  .superRefine(({ url, plainHosts }, context) => {
    if (url.protocol === 'https:' || isThisMachine(url.hostname) || plainHosts.includes(url.hostname)) return;
    const message = 'must be an https:// URL, or name a host of plainHosts';
    context.addIssue({ code: 'custom', path: ['url'], message });
  })
  .transform(({ url, secretFile }) => ({ url, secret: secretFile }));

function read(path: string): string | Error {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function isThisMachine(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(?:\.\d+){3}$/.test(host);
}
