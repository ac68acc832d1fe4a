/**
 * Stage of the output chain: synchronous, without I/O. `push` returns bytes that can be released. `heldBytes` counts
 * the input bytes that are still pending, because only released bytes may be acknowledged to the keeper.
 */
export interface Stage {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
  readonly heldBytes: number;
}
