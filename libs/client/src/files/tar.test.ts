import type { FileOperation, FileRecord, FileReply } from '@shellfleet/protocol';
import { extract, type Header, pack } from 'tar-stream';
import { describe, expect, test } from 'vitest';
import { readParts } from './file-parts.ts';
import type { FileSteps } from './file-steps.ts';
import { readTar } from './read-tar.ts';
import { writeTar } from './write-tar.ts';

/** Returns steps whose replies `replyTo` makes, and the operations that were sent. */
function stepsWith(replyTo: (operation: FileOperation) => FileReply) {
  const sent: FileOperation[] = [];
  const steps: FileSteps = {
    ahead: 1,
    async send(operation) {
      sent.push(operation);
      return { reply: async () => ({ epoch: 1, ...replyTo(operation) }) };
    },
  };
  return { steps, sent };
}

const modifiedAt = '2026-01-02T03:04:05.000Z';
const record = (name: string, type: FileRecord['type'], size = 0, more: Partial<FileRecord> = {}): FileRecord => ({
  ...{ name, type, size, mode: type === 'directory' ? 0o755 : 0o4644, modifiedAt, ...more },
});

/** Returns a directory of a sandbox. `contents` gives the bytes of a file, whatever its record tells. */
function directoryOf(records: FileRecord[], contents: (name: string) => Buffer) {
  return stepsWith((operation) => {
    if (operation.name === 'stat') return { records: [record('.', 'directory', 0, { mode: 0o750 })] };
    if (operation.name === 'list') return { records };
    if (operation.name === 'pack') {
      const read = (name: string) => ({ state: 'read' as const, mode: 0o644, data: contents(name).toString('base64') });
      return { files: operation.names.map(read) };
    }
    if (operation.name !== 'read') throw new Error(`unexpected ${operation.name}`);
    const { offset, length } = operation;
    const whole = contents(operation.path.slice('/d/'.length));
    return { data: whole.subarray(offset, offset + length).toString('base64'), size: whole.length, mode: 0o600 };
  });
}

async function unpacked(tar: AsyncIterable<Uint8Array>): Promise<[Header, string][]> {
  const archive = extract();
  const ending = (async () => {
    for await (const piece of tar)
      if (!archive.write(piece)) await new Promise<void>((done) => archive.once('drain', () => done()));
    archive.end(undefined);
  })();
  ending.catch((error: Error) => archive.destroy(error));
  const entries: [Header, string][] = [];
  for await (const entry of archive)
    entries.push([entry.header, Buffer.concat(await Array.fromAsync(entry as AsyncIterable<Buffer>)).toString()]);
  await ending;
  return entries;
}

async function* packed(entries: [Partial<Header> & { name: string }, string?][]): AsyncGenerator<Uint8Array> {
  const archive = pack();
  for (const [header, contents = ''] of entries) archive.entry(header, contents);
  archive.finalize();
  yield* archive as AsyncIterable<Buffer>;
}

describe('a directory as a tar', () => {
  test('has modes, times and names, large files whole, and links last', async () => {
    const large = 'x'.repeat(1_200_000);
    const name = `ü/${'n'.repeat(200)}`;
    const records = [
      record('a link', 'symlink', 4, { target: '/etc' }),
      record('large', 'file', large.length),
      record('ü', 'directory', 0, { mode: 0o500 }),
      record(name, 'file', 3),
    ];
    const { steps } = directoryOf(records, (file) => Buffer.from(file === 'large' ? large : 'abc'));
    const entries = await unpacked(readTar(steps, '/d', undefined));
    const facts = entries.map(([header, contents]) => [
      `${header.type} ${header.name} ${header.mode?.toString(8)} ${header.linkname ?? ''}`.trim(),
      contents.length,
    ]);
    expect(facts).toEqual([
      ['directory ./ 750', 0],
      ['file large 600', large.length],
      ['directory ü/ 500', 0],
      [`file ${name} 644`, 3],
      ['symlink a link 777 /etc', 0],
    ]);
    expect(entries[1]?.[1]).toBe(large);
    expect(entries[1]?.[0].mtime).toEqual(new Date(modifiedAt));
  });

  test.each<[string, FileRecord[], string]>([
    ['a name that leads out of it', [record('../evil', 'file', 3)], 'FILE_DENIED'],
    ['a device', [record('null', 'other')], 'FILE_DENIED'],
    ['a file that grows meanwhile', [record('grows', 'file', 600_000)], 'FILE_DENIED'],
  ])('is refused for %s', async (_what, records, code) => {
    let size = 600_000;
    const { steps } = directoryOf(records, () => Buffer.alloc(size++));
    const tar = readTar(steps, '/d', undefined);
    await expect(Array.fromAsync(tar)).rejects.toMatchObject({ code });
  });

  test('is read no further than a slow reader takes it', async () => {
    const records = Array.from({ length: 100 }, (_, index) => record(`f${index}`, 'file', 1_000_000));
    const { steps, sent } = directoryOf(records, () => Buffer.alloc(1_000_000));
    const tar = readTar(steps, '/d', undefined);
    await tar.next();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sent.length).toBeLessThan(10);
    await tar.return(undefined);
    const left = sent.length;
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(sent.length).toBeLessThanOrEqual(left + 1);
  });
});

describe('a tar into a directory', () => {
  test('becomes files, directories and links, of whatever size', async () => {
    const { steps, sent } = stepsWith(() => ({}));
    const large = 'y'.repeat(600_000);
    const tar = packed([
      [{ name: './', type: 'directory', mode: 0o700 }],
      [{ name: './a/', type: 'directory', mode: 0o500 }],
      [{ name: './a/small', mode: 0o6755 }, 'abc'],
      [{ name: 'large', mode: 0o644 }, large],
      [{ name: 'link', type: 'symlink', linkname: '../there' }],
    ]);
    await writeTar(steps, '/d', tar, () => 'id', undefined);
    const entries = sent.flatMap((operation) => (operation.name === 'unpack' ? operation.entries : []));
    expect(sent[0]).toEqual({ name: 'mkdir', path: '/d' });
    expect(entries.map(({ kind, name, mode, data = '' }) => [kind, name, mode, atob(data)])).toEqual([
      ['directory', '.', 0o700, ''],
      ['directory', 'a', 0o700, ''],
      ['file', 'a/small', 0o755, 'abc'],
      ['symlink', 'link', expect.any(Number), '../there'],
      ['mode', 'a', 0o500, ''],
    ]);
    const written = sent.flatMap((operation) => (operation.name === 'write' ? [operation] : []));
    expect(written.map(({ path, offset, last }) => [path, offset, last])).toEqual([
      ['/d/large', 0, false],
      ['/d/large', 524_288, true],
    ]);
  });

  test.each<[string, AsyncIterable<Uint8Array>, string]>([
    ['a name that leads out of it', packed([[{ name: '../evil' }, 'x']]), 'FILE_DENIED'],
    ['an absolute name', packed([[{ name: '/etc/evil' }, 'x']]), 'FILE_DENIED'],
    ['a hard link', packed([[{ name: 'hard', type: 'link', linkname: 'a' }]]), 'FILE_DENIED'],
    ['something else', toPieces(Buffer.alloc(2_000, 'x')), 'COMMAND_INVALID'],
    ['a tar that is cut off', cutOff(packed([[{ name: 'a' }, 'x'.repeat(400_000)]])), 'COMMAND_INVALID'],
  ])('is refused for %s', async (_what, tar, code) => {
    const { steps } = stepsWith(() => ({}));
    await expect(writeTar(steps, '/d', tar, () => 'id', undefined)).rejects.toMatchObject({ code });
  });

  test('is taken no further than the sandbox writes it', async () => {
    const whole = Buffer.concat(await Array.fromAsync(packed([[{ name: 'large' }, 'z'.repeat(20_000_000)]])));
    let taken = 0;
    const pieces = async function* () {
      for (; taken < whole.byteLength; taken += 65_536) yield whole.subarray(taken, taken + 65_536);
    };
    const stuck: FileSteps = {
      ahead: 1,
      send: async ({ name }) => ({ reply: async () => (name === 'mkdir' ? { epoch: 1 } : new Promise(() => {})) }),
    };
    void writeTar(stuck, '/d', pieces(), () => 'id', undefined);
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(taken).toBeGreaterThan(0);
    expect(taken).toBeLessThan(4_000_000);
  });
});

describe('a range of a file', () => {
  test.each<[number, number, number]>([
    [0, 10, 10],
    [5, 0, 0],
    [524_287, 2, 2],
    [0, 524_288, 524_288],
    [100, 3_000_000, 2_999_900],
    [3_000_000, 5, 0],
  ])('from %i of %i bytes has %i, and nothing else is read', async (offset, length, expected) => {
    const whole = Buffer.alloc(3_000_000, 'abcdefg');
    const { steps, sent } = directoryOf([], () => whole);
    const pieces: Uint8Array[] = [];
    for await (const { data } of readParts(steps, '/d/f', { range: { offset, length } })) pieces.push(data);
    expect(Buffer.concat(pieces).equals(whole.subarray(offset, offset + length))).toBe(true);
    expect(Buffer.concat(pieces).byteLength).toBe(expected);
    expect(sent).toHaveLength(Math.max(1, Math.ceil(expected / 524_288)));
  });
});

async function* toPieces(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function* cutOff(tar: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const whole = Buffer.concat(await Array.fromAsync(tar));
  yield whole.subarray(0, 300_000);
}
