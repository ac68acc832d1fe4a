// The little of the tar format (ustar) that is needed to put a folder or a file into a container that was not started.

const BLOCK = 512;

export interface TarEntry {
  /** Relative, at most 100 bytes. A folder's ends in '/'. */
  path: string;
  mode: number;
  uid: number;
  gid: number;
  data?: Buffer;
}

export function createTar(entries: readonly TarEntry[], modifiedAt = new Date()): Buffer {
  const blocks = entries.flatMap((entry) => [header(entry, modifiedAt), ...padded(entry.data ?? Buffer.alloc(0))]);
  return Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]);
}

function header({ path, mode, uid, gid, data }: TarEntry, modifiedAt: Date): Buffer {
  const block = Buffer.alloc(BLOCK);
  block.write(path, 0, 100, 'utf8');
  block.write(octal(mode, 7), 100);
  writeId(block, uid, 108);
  writeId(block, gid, 116);
  block.write(octal(data?.length ?? 0, 11), 124);
  block.write(octal(Math.floor(modifiedAt.getTime() / 1000), 11), 136);
  block.write(' '.repeat(8), 148);
  block.write(path.endsWith('/') ? '5' : '0', 156);
  block.write('ustar\x0000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${octal(sum, 6)}\0 `, 148, 'latin1');
  return block;
}

/** Seven octal digits, or, for a larger id, the binary form: the first bit set, the number at the end of the field. */
function writeId(block: Buffer, id: number, at: number): void {
  if (id < 8 ** 7) {
    block.write(octal(id, 7), at);
  } else {
    block[at] = 0x80;
    block.writeUInt32BE(id, at + 4);
  }
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

function padded(data: Buffer): Buffer[] {
  const rest = data.length % BLOCK;
  return rest === 0 ? [data] : [data, Buffer.alloc(BLOCK - rest)];
}
