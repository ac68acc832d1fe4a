import { type Session, ShellfleetError } from '@shellfleet/client';
import { fileInfoSchema } from '@shellfleet/protocol';
import { z } from 'zod';
import { type ByteRange, parseRange } from '../files/byte-range.ts';
import { fileHeaders, hasVersion, isOfVersion, versionOf } from '../files/file-headers.ts';
import { joinFirst, sendBytes } from '../files/send-bytes.ts';
import { readBody } from '../streams/read-body.ts';
import { flag, sessionPart } from './parts.ts';
import { type Call, route } from './route.ts';
import { findSession } from './sessions.ts';

const PATH = '/sessions/{id}/files/{path*}';
const TAR = 'application/x-tar';
const BYTES = 'application/octet-stream';
/** Bytes of a tar that are read before its reply begins. */
const TAR_AHEAD_BYTES = 262_144;

const params = {
  ...sessionPart,
  path: z
    .string()
    .transform((path) => `/${path}`)
    .meta({ description: 'Path in the sandbox, without its first slash. Each part is percent-encoded.' }),
};
const conditions = {
  range: z.string().optional().describe('`bytes=0-99`: one range of the file.'),
  'if-range': z.string().optional().describe('`ETag` or `Last-Modified` of the file that the range is of.'),
  'if-none-match': z.string().optional().describe('`ETag` of the file that the client has.'),
};
const FILE_HEADERS = {
  etag: 'Changes with size or time of the file. Absent for a symbolic link.',
  'last-modified': 'Time of the last change. Absent for a symbolic link.',
  'content-disposition': 'Name under which a browser stores the file.',
};

const NOT_MODIFIED = { description: 'The client has this version of the file.' };

const read = route({
  method: 'GET',
  path: PATH,
  scope: 'read',
  operationId: 'readFile',
  summary: 'Reads a file, or a directory as a tar',
  description:
    'A file is sent while it is read. With `list` or `stat` the reply is JSON. A session without a sandbox gets one first.',
  params,
  query: {
    list: flag('Lists the directory.'),
    stat: flag('Describes the path itself; a link is not followed.'),
    tar: flag(`Sends the directory as a tar, as \`Accept: ${TAR}\` does.`),
  },
  headers: { ...conditions, accept: z.string().optional().describe(`\`${TAR}\` for a directory.`) },
  replies: {
    200: {
      description: 'The file, the directory as a tar, or what `list` or `stat` asks for.',
      type: BYTES,
      others: {
        [TAR]: 'bytes',
        'application/json': z.union([fileInfoSchema, z.object({ items: z.array(fileInfoSchema) })]),
      },
      headers: FILE_HEADERS,
    },
    206: {
      description: 'The range.',
      type: BYTES,
      headers: { 'content-range': 'Place in the file.', ...FILE_HEADERS },
    },
    304: NOT_MODIFIED,
  },
  problems: [416],
  async handler(call) {
    const { params, query, headers, fleet, reply, beginWork } = call;
    const { files } = await findSession(fleet, params.id);
    const { path } = params;
    if (!query.list && !query.stat && !query.tar && !accepts(headers.accept)) return sendFile(call, files);
    const work = beginWork({ goesOn: true });
    if (query.tar || (!query.list && !query.stat)) {
      reply.type(TAR).headers(fileHeaders(`${nameOf(path) || params.id}.tar`));
      return sendBytes(reply, work, joinFirst(files.readTar(path, { signal: work.signal }), TAR_AHEAD_BYTES));
    }
    using _work = work;
    const options = { glob: false, signal: work.signal };
    return query.stat ? await files.stat(path, options) : { items: await files.list(path, options) };
  },
});

const head = route({
  method: 'HEAD',
  path: PATH,
  scope: 'read',
  operationId: 'describeFile',
  summary: 'Returns the headers of a file',
  params,
  headers: conditions,
  replies: {
    200: { description: 'The headers that a GET has.', headers: FILE_HEADERS },
    206: { description: 'The headers that a GET of the range has.', headers: FILE_HEADERS },
    304: NOT_MODIFIED,
  },
  problems: [416],
  async handler(call) {
    return sendFile(call, (await findSession(call.fleet, call.params.id)).files);
  },
});

const write = route({
  method: 'PUT',
  path: PATH,
  scope: 'submit',
  operationId: 'writeFile',
  summary: 'Writes a file, or the contents of a tar to a directory',
  description: `The body is passed on while it arrives. A file is complete or unchanged. With \`Content-Type: ${TAR}\` the path is a directory, which is made if it is missing, and what came before an error stays. The session is opened with defaults if it is not open.`,
  params,
  headers: { 'content-type': z.string().optional().describe(`\`${TAR}\`: the body is a tar.`) },
  body: 'bytes',
  bodyTypes: [TAR],
  replies: { 204: { description: 'Everything is written.' } },
  async handler({ params, headers, fleet, request, beginWork }) {
    const { files } = await fleet.session(params.id);
    using work = beginWork({ goesOn: true });
    const isTar = headers['content-type']?.split(';')[0]?.trim().toLowerCase() === TAR;
    const options = { signal: work.signal };
    const body = readBody(request.raw, work.signal);
    if (isTar) await files.writeTar(params.path, body, options);
    else await files.write(params.path, body, options);
  },
});

const remove = route({
  method: 'DELETE',
  path: PATH,
  scope: 'submit',
  operationId: 'removeFile',
  summary: 'Removes a file or directory',
  params,
  query: { recursive: flag('Removes a directory with everything in it. Without it only an empty one is removed.') },
  replies: { 204: { description: 'It is removed.' } },
  async handler({ params, query, fleet, beginWork }) {
    const { files } = await findSession(fleet, params.id);
    using work = beginWork({ goesOn: true });
    await files.remove(params.path, { recursive: query.recursive, signal: work.signal });
  },
});

const change = route({
  method: 'POST',
  path: PATH,
  scope: 'submit',
  operationId: 'changeFile',
  summary: 'Makes a directory, renames something, or sets its permission bits',
  params,
  query: {
    op: z.enum(['mkdir', 'rename', 'chmod']).describe('What is done.'),
    to: z.string().optional().describe('For `rename`: the new absolute path.'),
    mode: z
      .string()
      .regex(/^[0-7]{1,4}$/, 'must be octal, such as 755')
      .optional()
      .describe('For `chmod`: the bits, in octal.'),
  },
  replies: { 204: { description: 'It is done.' } },
  async handler({ params, query: { op, to, mode }, fleet, beginWork }) {
    const { files } = await fleet.session(params.id);
    using work = beginWork({ goesOn: true });
    const options = { signal: work.signal };
    if (op === 'mkdir') await files.mkdir(params.path, options);
    else if (op === 'rename') await files.rename(params.path, needed('to', to), options);
    else await files.chmod(params.path, Number.parseInt(needed('mode', mode), 8), options);
  },
});

export const fileRoutes = [read, head, write, remove, change];

const accepts = (accept: string | undefined) => accept?.toLowerCase().includes(TAR) === true;
const nameOf = (path: string) => path.slice(path.replace(/\/+$/, '').lastIndexOf('/') + 1).replace(/\/+$/, '');

type FileCall = Pick<Call, 'request' | 'reply' | 'beginWork'> & {
  params: { path: string };
  headers: { range?: string | undefined; 'if-range'?: string | undefined; 'if-none-match'?: string | undefined };
};

/** Sends a file or a range of it, or with HEAD only its headers. */
async function sendFile(call: FileCall, files: Session['files']): Promise<unknown> {
  const { params, request, reply, beginWork } = call;
  const range = await prepare(call, files);
  if (range === undefined) return reply.code(304).send();
  const { offset, length } = range;
  if (request.method === 'HEAD') return reply.header('content-length', length).send();
  const work = beginWork({ goesOn: true });
  const { signal } = work;
  // Files such as those of /proc have contents but no size.
  if (length === 0) return sendBytes(reply, work, files.stream(params.path, { signal }));
  return sendBytes(reply, work, files.stream(params.path, { offset, length, signal }), length);
}

/** Sets status and headers. Returns the range to send, or undefined if the client has this version of the file. */
async function prepare(
  { params: { path }, headers, reply, beginWork }: FileCall,
  files: Session['files'],
): Promise<ByteRange | undefined> {
  using work = beginWork({ goesOn: true });
  const info = await files.stat(path, { signal: work.signal });
  if (info.type === 'directory') throw isDirectory(path);
  const size = info.type === 'file' ? info.size : await sizeOfTarget(files, path, work.signal);
  const version = versionOf(info);
  const range = isOfVersion(headers, version) ? parseRange(headers.range, size) : undefined;
  reply.headers({ 'accept-ranges': 'bytes', ...fileHeaders(nameOf(path)), ...version }).type(BYTES);
  if (hasVersion(headers, version)) return undefined;
  if (range === undefined) return { offset: 0, length: size };
  const { offset, length } = range;
  reply.code(206).header('content-range', `bytes ${offset}-${offset + length - 1}/${size}`);
  return range;
}

async function sizeOfTarget(files: Session['files'], path: string, signal: AbortSignal): Promise<number> {
  return (await files.open(path, { length: 1, signal })).size;
}

function isDirectory(path: string): ShellfleetError {
  const message = `${path} is a directory. Use ?list to list it, and ?tar to read it as a tar.`;
  return new ShellfleetError('FILE_IS_DIRECTORY', message, { path });
}

function needed(name: string, value: string | undefined): string {
  if (value !== undefined) return value;
  const message = 'is needed for this operation';
  throw new ShellfleetError('COMMAND_INVALID', `The query: ${name} ${message}.`, { issues: [{ path: name, message }] });
}
