import { CleanOutput } from './clean-output.ts';
import type { CreateRedactor, RedactionStage } from './redactor.ts';
import type { ResultTextsOptions } from './result-texts.ts';

// Every way of output out of a sandbox, with its stages. Tool calls are separate: their output is one JSON value, which
// is redacted as a whole (tools/redact-json.ts).

/** Creates a command's chain: decode → redact → budget of the stream, then overflow log → texts of the Result. */
export function createCommandChain(
  createRedactor: CreateRedactor,
  { streamBytes, ...texts }: { streamBytes: number } & ResultTextsOptions,
): CleanOutput {
  return new CleanOutput({ createRedactor, streamBytes, texts });
}

/** Creates the chain of late output: decode → redact → rest of the command's budget. The Result exists already. */
export function createLateChain(createRedactor: CreateRedactor, streamBytes: number): CleanOutput {
  return new CleanOutput({ createRedactor, streamBytes });
}

/** Creates the chain of a startup or shutdown command: decode → redact → end of the text, for an error message. */
export function createOwnCommandChain(createRedactor: CreateRedactor): CleanOutput {
  const texts = { maxBytes: 4_096, maxLines: 100, keep: 'tail', encoding: 'utf8' } as const;
  return new CleanOutput({ createRedactor, texts });
}

/** Creates the chain of a terminal: redact. The user's program decodes. `before` are the last bytes that were shown. */
export function createTerminalChain(createRedactor: CreateRedactor, before: Uint8Array): RedactionStage {
  return createRedactor({ before });
}
