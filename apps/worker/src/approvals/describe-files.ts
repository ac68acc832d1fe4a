import { createHash } from 'node:crypto';
import { type FileOperation, quoteWord, type StoredQuestion } from '@shellfleet/protocol';
import { wordsOfFile } from '../admission/file-words.ts';

/** Describes a file operation to a person: one line of words per file, size and digest of written bytes. */
export function describeFiles(operation: FileOperation): Pick<StoredQuestion, 'script' | 'content'> {
  const script = wordsOfFile(operation)
    .map(({ words }) => words.map(quoteWord).join(' '))
    .join('\n');
  const content = contentOf(operation);
  return { script, ...(content === undefined ? {} : { content }) };
}

function contentOf(operation: FileOperation): StoredQuestion['content'] {
  if (operation.name === 'write') {
    const { bytes, sha256 } = operation.whole ?? digestOf(Buffer.from(operation.data, 'base64'));
    return { files: 1, bytes, sha256 };
  }
  if (operation.name !== 'unpack') return undefined;
  const files = operation.entries.flatMap(({ kind, name, data = '' }) =>
    kind === 'file' || kind === 'symlink' ? [{ name, ...digestOf(Buffer.from(data, 'base64')) }] : [],
  );
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const list = files.map(({ name, sha256 }) => `${sha256}  ${name}\n`).join('');
  const sha256 = files.length === 1 ? (files[0]?.sha256 as string) : digestOf(Buffer.from(list)).sha256;
  return { files: files.length, bytes, sha256 };
}

function digestOf(bytes: Uint8Array): { bytes: number; sha256: string } {
  return { bytes: bytes.byteLength, sha256: createHash('sha256').update(bytes).digest('hex') };
}
