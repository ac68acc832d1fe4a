/**
 * One stage of the output chain: synchronous, without I/O. `push` returns the bytes that can be released. The input bytes that it still
 * holds are counted in `heldBytes`, because only released bytes may be acknowledged to the keeper.
 */
export interface Stage {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
  readonly heldBytes: number;
}
