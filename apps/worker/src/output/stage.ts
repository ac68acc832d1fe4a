/**
 * One step of the output chain: synchronous, no I/O. `push` returns what is safe to release; what it still holds back is
 * counted in `heldBytes` (of its input), so that only bytes which were released are ever acknowledged to the keeper.
 */
export interface Stage {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
  readonly heldBytes: number;
}
