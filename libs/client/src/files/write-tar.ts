import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { ShellfleetError } from '@shellfleet/protocol';
import type { Header } from 'tar-stream';
import { checkCopiedName, notCopied } from './copied-name.ts';
import { doStep, type FileSteps } from './file-steps.ts';
import { PERMISSIONS } from './local-file.ts';
import { Progress } from './progress.ts';
import { type SentItem, sendDirectory } from './send-directory.ts';

/** Writes what a tar contains to a directory of the sandbox, which is made if it is missing. `nextId` makes ULIDs. */
export async function writeTar(
  steps: FileSteps,
  path: string,
  tar: AsyncIterable<Uint8Array>,
  nextId: () => string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { extract } = await import('tar-stream');
  await doStep(steps, { name: 'mkdir', path });
  const archive = extract();
  const items = async function* (): AsyncGenerator<SentItem> {
    for await (const entry of archive) {
      yield toItem(path, entry.header, entry as AsyncIterable<Buffer>);
      entry.resume();
    }
  };
  const reading = pipeline(Readable.from(tar), archive).catch((error: Error) => {
    throw error instanceof ShellfleetError ? error : notATar(path, error);
  });
  const sending = sendDirectory(steps, path, items(), nextId, new Progress(undefined), signal).catch((error: Error) => {
    archive.destroy(error);
    throw error;
  });
  // The sending fails because of the reading, or ends it.
  const [read, sent] = await Promise.allSettled([reading, sending]);
  signal?.throwIfAborted();
  if (sent.status === 'rejected' && sent.reason instanceof ShellfleetError) throw sent.reason;
  for (const end of [read, sent]) if (end.status === 'rejected') throw end.reason;
}

function toItem(path: string, { type, ...header }: Header, contents: AsyncIterable<Buffer>): SentItem {
  const name = header.name.replace(/^(\.\/+)+/, '').replace(/\/+$/, '');
  const mode = (header.mode ?? (type === 'directory' ? 0o755 : 0o644)) & PERMISSIONS;
  if (type === 'directory' && (name === '' || name === '.')) return { type, name: '.', mode };
  checkCopiedName(name, path);
  switch (type) {
    case 'directory':
      return { type, name, mode };
    case 'symlink':
      return { type, name, mode, target: header.linkname ?? '' };
    case 'file':
    case 'contiguous-file': {
      const read = () => buffer(contents);
      return { type: 'file', name, mode, size: header.size ?? 0, read, pieces: () => contents };
    }
    default:
      throw notCopied(`${path}/${name}`, 'is neither a file nor a directory nor a symbolic link');
  }
}

function notATar(path: string, cause: Error): ShellfleetError {
  const message = `What was sent for ${path} is no complete tar: ${cause.message}. Some of it may be there already.`;
  return new ShellfleetError('COMMAND_INVALID', message, {}, { cause });
}
