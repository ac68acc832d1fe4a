import { preloadZod } from './preload-zod.ts';
import type { ChildRequest } from './request.ts';

const { readSync } = process.getBuiltinModule('node:fs');

const STDIN = 0;
const READ_BYTES = 65_536;
const NEWLINE = 0x0a;

/**
 * Reads what the worker sends: a line with the modules to load ahead, at once; when a call is known, a line with its request, and its
 * arguments. It blocks, because the process has nothing else to do until then, and `process.stdin` would load Node's network code.
 */
export async function readInput(): Promise<{ request: ChildRequest; args: string }> {
  let input: Buffer = Buffer.alloc(0);
  while (!input.includes(NEWLINE)) {
    const more = read();
    if (more.length === 0) break;
    input = Buffer.concat([input, more]);
  }
  const [preload, rest] = splitLine(input);
  await preloadZod(JSON.parse(preload) as string[]);
  const chunks = [rest];
  for (let more = read(); more.length > 0; more = read()) chunks.push(more);
  const [request, args] = splitLine(Buffer.concat(chunks));
  return { request: JSON.parse(request) as ChildRequest, args: args.toString('utf8') };
}

/** Empty at the end of the input. */
function read(): Buffer {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  return buffer.subarray(0, readSync(STDIN, buffer));
}

function splitLine(input: Buffer): [string, Buffer] {
  const end = input.indexOf(NEWLINE);
  return [input.toString('utf8', 0, end), input.subarray(end + 1)];
}
