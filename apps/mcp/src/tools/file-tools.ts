import { fileInfoSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { findSessionOf, openSessionOf, sessionArgument } from '../commands/session-of-call.ts';
import { withinAnswer } from '../commands/within-answer.ts';
import { readPart, toBytes } from '../files/file-content.ts';
import { defineMcpTool } from './define-tool.ts';

const MOST_READ = 262_144;
const READ = 65_536;
const MOST_LISTED = 500;
const NOT_DONE = 'The sandbox did not reply in time: it waits for a slot, or a person has to approve the operation.';
const path = z.string().describe('Absolute path in the sandbox.');

export const readFile = defineMcpTool({
  name: 'read_file',
  title: 'Read a file',
  description: 'Reads a file of the sandbox, or a part of it. Binary files are returned in base64.',
  input: z.strictObject({
    session: sessionArgument,
    path,
    offset: z.int().min(0).default(0).describe('Byte to start at: the `next` of the last answer.'),
    max_bytes: z.int().min(1).max(MOST_READ).default(READ),
  }),
  output: z.object({
    path: z.string(),
    size: z.number().describe('Size of the whole file in bytes.'),
    encoding: z.enum(['utf8', 'base64']),
    content: z.string(),
    next: z.number().optional().describe('Offset of the next part. Absent at the end.'),
  }),
  annotations: { readOnlyHint: true, openWorldHint: false },
  scope: 'read',
  async run({ session: name, path, offset, max_bytes: most }, call) {
    const session = await findSessionOf(call, name);
    const read = (signal: AbortSignal) => readPart(session, path, { offset, most, signal });
    const { bytes, ...part } = await withinAnswer(call, NOT_DONE, read);
    const isWhole = offset === 0 && part.next === undefined;
    const range = isWhole ? '' : `[bytes ${offset} to ${offset + bytes} of ${part.size}]\n`;
    const more = part.next === undefined ? '' : `\n[offset: ${part.next} reads on]`;
    return { structured: { path, ...part }, text: `${range}${part.content}${more}` };
  },
});

export const writeFile = defineMcpTool({
  name: 'write_file',
  title: 'Write a file',
  description:
    'Writes a whole file of the sandbox in one step, and makes its directory. A replaced file keeps its mode.',
  input: z.strictObject({
    session: sessionArgument,
    path,
    content: z.string(),
    encoding: z.enum(['utf8', 'base64']).default('utf8').describe('base64 for bytes that are no text.'),
  }),
  output: z.object({ path: z.string(), bytes: z.number() }),
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },
  scope: 'submit',
  async run({ session: name, path, content, encoding }, call) {
    const data = toBytes(content, encoding);
    const session = await openSessionOf(call, name);
    await withinAnswer(call, NOT_DONE, (signal) => session.files.write(path, data, { signal }));
    return { structured: { path, bytes: data.byteLength }, text: `Wrote ${data.byteLength} bytes to ${path}.` };
  },
});

export const listFiles = defineMcpTool({
  name: 'list_files',
  title: 'List files',
  description: 'Lists a directory of the sandbox, or what matches a pattern: *, ?, [a-z], and ** for any directories.',
  input: z.strictObject({ session: sessionArgument, path }),
  output: z.object({
    path: z.string(),
    files: z.array(fileInfoSchema),
    truncated: z.boolean().describe(`Whether there are more than ${MOST_LISTED}. Use a pattern then.`),
    total: z.number(),
  }),
  annotations: { readOnlyHint: true, openWorldHint: false },
  scope: 'read',
  async run({ session: name, path }, call) {
    const session = await findSessionOf(call, name);
    const all = await withinAnswer(call, NOT_DONE, (signal) => session.files.list(path, { signal }));
    const files = all.slice(0, MOST_LISTED);
    const truncated = all.length > files.length;
    const lines = files.map(({ type, size, name }) => `${type.padEnd(9)} ${String(size).padStart(10)}  ${name}`);
    if (truncated) lines.push(`... and ${all.length - files.length} more. Use a pattern in the path.`);
    const text = lines.length === 0 ? `${path} is empty.` : lines.join('\n');
    return { structured: { path, files, truncated, total: all.length }, text };
  },
});
