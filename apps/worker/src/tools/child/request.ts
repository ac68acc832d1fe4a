import type { ToolError, ToolOffer } from '@shellfleet/protocol';

// To the process of a call, the worker writes the request (one line of JSON) and the arguments on stdin. The process
// replies on descriptor 3: a byte when it has read them, a report (one line of JSON) and the output.

export const REPORT_DESCRIPTOR = 3;
/** Byte that the process sends when it has read its request. */
export const BEGUN = '+';

export type ChildRequest =
  | { type: 'describe'; module: string }
  | { type: 'call'; module: string; exported: string; name: string; outputBytes: number };

export interface DescribedTool extends ToolOffer {
  exported: string;
  memoryBytes: number;
  /** Whether a caller's timeout may not exceed `timeoutMs`. */
  timeoutIsMost: boolean;
}

export type ChildReport =
  /** `dataBytes` is the memory of the runtime itself, measured before a module is loaded. */
  | { type: 'described'; tools: DescribedTool[]; dataBytes: number }
  | { type: 'refused'; message: string }
  /** The output follows as JSON. `redacted` is true if the process has redacted it already, because it is large. */
  | { type: 'output'; redacted: boolean }
  | { type: 'failed'; error: ToolError };
