import { ChunkAssembler } from './chunk-assembler.ts';

/** Most ended commands whose assemblers are kept, because their background processes may still write output. */
const MOST_ENDED = 64;

/**
 * The assemblers of a reader that reads all commands of a session: one for the running command, and one for each
 * recently ended command.
 */
export class ChunkAssemblers {
  readonly #all = new Map<string, ChunkAssembler>();
  readonly #ended = new Set<string>();
  /**
   * True if the reader may already have output of a command that is unknown here. Then missing bytes of the command
   * count from its next chunk on.
   */
  #mayKnowMore: boolean;
  readonly #hasText: boolean;

  constructor(resumed: boolean, hasText: boolean) {
    this.#mayKnowMore = resumed;
    this.#hasText = hasText;
  }

  begin(entryId: string): void {
    this.#ended.delete(entryId);
    this.#all.set(entryId, new ChunkAssembler(undefined, this.#hasText));
  }

  of(entryId: string): ChunkAssembler {
    const known = this.#all.get(entryId);
    if (known !== undefined) return known;
    const from = this.#mayKnowMore ? undefined : 0;
    const assembler = new ChunkAssembler({ stdout: from, stderr: from }, this.#hasText);
    this.#all.set(entryId, assembler);
    this.end(entryId);
    return assembler;
  }

  /** Marks the command as ended, so that it is dropped when enough later commands have ended. */
  end(entryId: string): void {
    this.#ended.add(entryId);
    if (this.#ended.size <= MOST_ENDED) return;
    const [oldest = ''] = this.#ended;
    this.#ended.delete(oldest);
    this.#all.delete(oldest);
    this.#mayKnowMore = true;
  }
}
