import { LIMITS } from './limits.ts';
import type { OutputOptions, SessionSpec } from './session-spec.ts';

/** Time limits of other systems, for the spec of a session. */
export const TIMEOUT_PROFILES = {
  /** LangChain's shell tool: 30 s for a command, 30 s for the start, 10 s for the end. */
  langchain: { commandTimeoutMs: 30_000, startupTimeoutMs: 30_000, terminationTimeoutMs: 10_000 },
  codex: { commandTimeoutMs: 10_000 },
} as const satisfies Record<string, SessionSpec>;

/** Output bounds of other systems, for `output` of a session's spec. The truncated part is still counted and marked. */
export const OUTPUT_PROFILES = {
  /**
   * LangChain's shell tool: 100 lines, from the start. The tool has no limit in bytes, so `maxBytes` is the largest
   * possible.
   */
  langchain: { maxLines: 100, maxBytes: LIMITS.outputBytes, keep: 'head' },
  /** Codex keeps 10 KiB or 256 lines of each stream, from the start, whichever comes first. */
  codex: { maxLines: 256, maxBytes: 10_240, keep: 'head' },
} as const satisfies Record<string, OutputOptions>;
