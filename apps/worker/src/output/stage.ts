/**
 * Synchronous stage of the output chain, without I/O. `push` returns the bytes to release. `pendingBytes` counts the
 * pending input: only released bytes may be acknowledged to the keeper.
 */
export interface Stage {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
  readonly pendingBytes: number;
}
