/**
 * One step of the output chain: synchronous, no I/O. `push` returns what is safe to release; what it still holds back is
 * counted in `heldBytes` (of its input), so that only bytes which were released are ever acknowledged to the keeper.
 */
export interface Stage {
  push(bytes: Buffer): Buffer;
  end(): Buffer;
  readonly heldBytes: number;
}

/** Several stages as one. With no stage at all, bytes pass through untouched. */
export function chainStages(stages: readonly Stage[]): Stage {
  return {
    push: (bytes) => stages.reduce((released, stage) => stage.push(released), bytes),
    end() {
      let released: Buffer = Buffer.alloc(0);
      for (const stage of stages) released = Buffer.concat([stage.push(released), stage.end()]);
      return released;
    },
    get heldBytes() {
      return stages.reduce((held, stage) => held + stage.heldBytes, 0);
    },
  };
}
