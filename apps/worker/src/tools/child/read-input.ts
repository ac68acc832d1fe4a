import type { ChildRequest } from './request.ts';

const { readFileSync } = process.getBuiltinModule('node:fs');

const STDIN = 0;
const NEWLINE = 0x0a;

/** Reads the request and the arguments. Blocks, since `process.stdin` would load network code. */
export function readRequest(): { request: ChildRequest; args: string } {
  const input = readFileSync(STDIN);
  const end = input.indexOf(NEWLINE);
  return { request: JSON.parse(input.toString('utf8', 0, end)), args: input.toString('utf8', end + 1) };
}
