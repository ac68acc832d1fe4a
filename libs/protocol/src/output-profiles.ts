import { LIMITS } from './limits.ts';
import type { SessionSpec } from './session.ts';

type OutputSpec = NonNullable<SessionSpec['output']>;

/** Output bounds of other systems, for `output` of a session's spec. The truncated part is still counted and marked. */
export const OUTPUT_PROFILES = {
  /** LangChain's shell tool: 100 lines, from the start. It has no limit in bytes; this is the largest one here. */
  langchain: { maxLines: 100, maxBytes: LIMITS.outputBytes, keep: 'head' },
  /** Codex: 10 KiB and 256 lines of each stream, from the start, whichever comes first. */
  codex: { maxLines: 256, maxBytes: 10_240, keep: 'head' },
} as const satisfies Record<string, OutputSpec>;
