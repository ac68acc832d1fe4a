import { CleanOutput } from './clean-output.ts';
import type { CreateRedactor, RedactionStage } from './redactor.ts';
import type { ResultTextsOptions } from './result-texts.ts';

// Every way of output out of a sandbox, with its stages. Tool calls are beside these: their output is one JSON value, redacted whole
// (tools/redact-json.ts).

/** A command: decode → redact → budget of the session's stream (beyond it the host's log) → texts of the Result. */
export function createCommandChain(
  createRedactor: CreateRedactor,
  { streamBytes, ...texts }: { streamBytes: number } & ResultTextsOptions,
): CleanOutput {
  return new CleanOutput({ createRedactor, streamBytes, texts });
}

/** Late output of a command: decode → redact → rest of its budget. Its Result exists already. */
export function createLateChain(createRedactor: CreateRedactor, streamBytes: number): CleanOutput {
  return new CleanOutput({ createRedactor, streamBytes });
}

/** A startup or shutdown command: decode → redact → the end of its texts, for the message when it fails. Nothing is stored. */
export function createOwnCommandChain(createRedactor: CreateRedactor): CleanOutput {
  const texts = { maxBytes: 4_096, maxLines: 100, keep: 'tail', encoding: 'utf8' } as const;
  return new CleanOutput({ createRedactor, texts });
}

/** A terminal: redact only. Its user's program decodes. `before`: the last bytes that were shown. */
export function createTerminalChain(createRedactor: CreateRedactor, before: Uint8Array): RedactionStage {
  return createRedactor({ before });
}
