import type { Readable } from 'node:stream';
import type { ChildRequest } from './request.ts';

/**
 * Reads what the worker sends: a line with the modules to load ahead, at once; when a call is known, a line with its request, and its
 * arguments. The first line may come long before the rest.
 */
export async function readInput(stream: Readable): Promise<{ request: ChildRequest; args: string }> {
  stream.setEncoding('utf8');
  let input = '';
  let loading: Promise<unknown> | undefined;
  for await (const chunk of stream) {
    input += chunk;
    const end = loading === undefined ? input.indexOf('\n') : -1;
    if (end < 0) continue;
    loading = loadAhead(JSON.parse(input.slice(0, end)) as string[]);
    input = input.slice(end + 1);
  }
  await loading;
  const end = input.indexOf('\n');
  return { request: JSON.parse(input.slice(0, end)) as ChildRequest, args: input.slice(end + 1) };
}

/** A module that does not load here fails again where the tool imports it. */
async function loadAhead(urls: readonly string[]): Promise<unknown> {
  return Promise.allSettled(urls.map((url) => import(url)));
}
