import { buffer } from 'node:stream/consumers';
import { pack } from 'tar-stream';

/** Directory, or file with `data`, to be put into a container before it starts. */
export interface TarItem {
  /** Relative path. That of a directory ends in '/'. */
  path: string;
  mode: number;
  uid: number;
  gid: number;
  data?: Buffer;
}

export async function createTar(entries: readonly TarItem[]): Promise<Buffer> {
  const archive = pack();
  for (const { path, mode, uid, gid, data } of entries) {
    // Ids above 262,143 do not fit in the header.
    const pax = { uid: String(uid), gid: String(gid) };
    const type = path.endsWith('/') ? 'directory' : 'file';
    archive.entry({ name: path, type, mode, uid, gid, pax }, data ?? Buffer.alloc(0));
  }
  archive.finalize();
  return buffer(archive);
}
