import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
} from '@modelcontextprotocol/server';
import { isShellfleetError, ShellfleetError } from '@shellfleet/protocol';
import { findSessionOf } from '../commands/session-of-call.ts';
import { withinAnswer } from '../commands/within-answer.ts';
import type { OpenCall } from '../tools/define-tool.ts';
import type { ToolCall } from '../tools/tool-call.ts';
import { readPart } from './file-content.ts';

const MOST_BYTES = 1_048_576;
const NOT_DONE = 'The sandbox did not reply in time.';
const NOT_FOUND = ['FILE_NOT_FOUND', 'SESSION_NOT_FOUND'];

/** Offers the files of sessions as resources: `shellfleet://SESSION/absolute/path`. */
export function addFileResources(server: McpServer, open: OpenCall): void {
  const template = new ResourceTemplate('shellfleet://{session}/{+path}', { list: undefined });
  const metadata = {
    title: 'File of a session',
    description: 'A file in the sandbox of a session, up to 1 MiB. read_file reads larger ones in parts.',
  };
  server.registerResource('session-file', template, metadata, async (uri, { session, path }, context) => {
    try {
      const call = await open(context, 'read');
      const { encoding, content } = await readWhole(call, decode(session), `/${decode(path)}`);
      const contents =
        encoding === 'utf8'
          ? { uri: uri.href, mimeType: 'text/plain', text: content }
          : { uri: uri.href, mimeType: 'application/octet-stream', blob: content };
      return { contents: [contents] };
    } catch (error) {
      throw toProtocolError(error, uri.href);
    }
  });
}

async function readWhole(call: ToolCall, name: string, path: string) {
  const session = await findSessionOf(call, name);
  const read = (signal: AbortSignal) => readPart(session, path, { offset: 0, most: MOST_BYTES, signal });
  const part = await withinAnswer(call, NOT_DONE, read);
  if (part.next === undefined) return part;
  const message = `${path} has ${part.size} bytes; a resource has at most ${MOST_BYTES}. Read it in parts with read_file.`;
  throw new ShellfleetError('FILE_TOO_LARGE', message, { path });
}

function decode(part: string | string[] | undefined): string {
  const text = Array.isArray(part) ? part.join('/') : (part ?? '');
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ShellfleetError('PATH_INVALID', `${text} is not percent-encoded UTF-8.`, { path: text });
  }
}

/** Returns the error of the protocol. Its data has our code. */
function toProtocolError(error: unknown, uri: string): Error {
  if (!isShellfleetError(error)) return new ProtocolError(ProtocolErrorCode.InternalError, 'The server failed.');
  const { code, message, retryable } = error;
  if (NOT_FOUND.includes(code)) return new ResourceNotFoundError(uri, `${code}: ${message}`);
  return new ProtocolError(ProtocolErrorCode.InternalError, `${code}: ${message}`, { code, retryable });
}
