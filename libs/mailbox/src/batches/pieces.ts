import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { sealPlace } from '@shellfleet/sealing';
import type { BatchAccess } from './access.ts';

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** Most bytes of a piece before it is compressed. */
const PIECE_BYTES = 1_048_576;

type Kind = 'batch-tasks' | 'batch-results';

/** Compresses and seals a piece of text. */
export async function sealPiece(
  { sealer, keys }: BatchAccess,
  kind: Kind,
  of: { id: string; part: string },
  plain: Uint8Array,
): Promise<string> {
  return sealer.seal(await compress(plain), sealPlace(kind, keys, { batch: keys.name, ...of }));
}

export async function openPiece(
  { sealer, keys }: BatchAccess,
  kind: Kind,
  of: { id: string; part: string },
  sealed: string,
): Promise<Buffer> {
  const bytes = sealer.openBytes(sealed, sealPlace(kind, keys, { batch: keys.name, ...of }));
  return decompress(bytes, { maxOutputLength: PIECE_BYTES });
}

/** Cuts bytes into pieces. No bytes are one empty piece. */
export function* cutPieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at === 0 || at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** Returns the name under which an output of a run of a task is stored. */
export const outputName = (run: string, path: string): string =>
  createHash('sha256')
    .update(JSON.stringify([run, path]))
    .digest('base64url');
