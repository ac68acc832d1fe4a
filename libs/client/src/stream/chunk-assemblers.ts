import { ChunkAssembler } from './chunk-assembler.ts';

/** Ended commands whose background processes may still write output. */
const MOST_ENDED = 64;

/** The assemblers of a reader of all commands of a session: of the running command and of the last ended ones. */
export class ChunkAssemblers {
  readonly #all = new Map<string, ChunkAssembler>();
  readonly #ended = new Set<string>();
  /** Whether the reader may have output of an unknown command, whose missing bytes count from its next chunk on. */
  #mayKnowMore: boolean;

  constructor(resumed: boolean) {
    this.#mayKnowMore = resumed;
  }

  begin(entryId: string): void {
    this.#ended.delete(entryId);
    this.#all.set(entryId, new ChunkAssembler());
  }

  of(entryId: string): ChunkAssembler {
    const known = this.#all.get(entryId);
    if (known !== undefined) return known;
    const from = this.#mayKnowMore ? undefined : 0;
    const assembler = new ChunkAssembler({ stdout: from, stderr: from });
    this.#all.set(entryId, assembler);
    this.end(entryId);
    return assembler;
  }

  /** Allows the command to be dropped, after those that ended before it. */
  end(entryId: string): void {
    this.#ended.add(entryId);
    if (this.#ended.size <= MOST_ENDED) return;
    const [oldest = ''] = this.#ended;
    this.#ended.delete(oldest);
    this.#all.delete(oldest);
    this.#mayKnowMore = true;
  }
}
