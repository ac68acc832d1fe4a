import { describeBlocked, describeDenied, type OutputOptions, type Result } from '@shellfleet/protocol';

/** Facts that the text needs and the Result lacks. */
export interface ModelTextOptions {
  /** Bounds of the output, as in the session's spec or one of OUTPUT_PROFILES, for the note on truncation. */
  output?: Pick<OutputOptions, 'maxLines' | 'maxBytes' | 'keep'> | undefined;
  /**
   * Timeout of the command in ms, for the message after a timeout.
   * @default the limit that the Result names
   */
  timeoutMs?: number | undefined;
  /**
   * Whether the model has a way to give `escalate`, so that a denial by the sandbox comes with advice about it.
   * @default true
   */
  canEscalate?: boolean | undefined;
}

/** A Result as a language model reads it. */
export interface ModelText {
  /** Text for the model. */
  text: string;
  /** `success` for the outcome success. */
  status: 'success' | 'error';
  /** Data for programs. `redaction_matches` counts matches by rule, without values. */
  artifact: {
    timed_out: boolean;
    exit_code: number | null;
    truncated_by_lines: boolean;
    truncated_by_bytes: boolean;
    total_lines: number;
    total_bytes: number;
    redaction_matches: Record<string, number>;
  };
}

/**
 * Formats a Result with encoding `utf8` for a language model: both streams, with stderr marked, and notes on
 * truncation, exit code and a lost shell. Every adapter uses this function.
 *
 * ```ts
 * const { text } = toModelText(await session.run('make test'), { timeoutMs: 30_000 });
 * ```
 */
export function toModelText(result: Result, options: ModelTextOptions = {}): ModelText {
  const { totals, truncated, outcome, exitCode } = result;
  return {
    text: [...headline(result, options), ...body(result, options), ...footer(result, options)].join('\n\n'),
    status: outcome === 'success' ? 'success' : 'error',
    artifact: {
      timed_out: outcome === 'timeout',
      exit_code: exitCode,
      truncated_by_lines: truncated.lines,
      truncated_by_bytes: truncated.bytes,
      total_lines: totals.stdoutLines + totals.stderrLines,
      total_bytes: totals.stdoutBytes + totals.stderrBytes,
      redaction_matches: result.redactions,
    },
  };
}

function headline(result: Result, { timeoutMs: given }: ModelTextOptions): string[] {
  const { outcome, error, blocked, timings } = result;
  const timeoutMs = given ?? (result.outcome === 'timeout' ? result.limitMs : undefined) ?? timings.runMs;
  const withheld = blocked === undefined ? [] : [describeBlocked(blocked)];
  switch (outcome) {
    case 'success':
    case 'failure':
      return [];
    case 'timeout':
      return [`Error: Command timed out after ${(timeoutMs / 1_000).toFixed(1)} seconds.`, ...withheld];
    case 'cancellation':
      return ['Error: Command was cancelled.', ...withheld];
    case 'blocked':
      return withheld;
    case 'lost':
      return ['Error: The host was lost while the command ran. Whether it took effect is not known.', ...withheld];
    case 'denial':
    case 'error':
      return [`Error: ${error?.message ?? 'The command was not run.'}`];
  }
}

function body(result: Result, { output = {} }: ModelTextOptions): string[] {
  if (result.blocked !== undefined) return [];
  const text = markStderr(result, output.keep).trimEnd();
  // For other outcomes than success and failure the headline is enough.
  if (text === '') return ['success', 'failure'].includes(result.outcome) ? ['<no output>'] : [];
  return [text, ...cuts(result, output)];
}

function cuts(
  { truncated, totals }: Result,
  { maxLines, maxBytes }: NonNullable<ModelTextOptions['output']>,
): string[] {
  const note = (bound: number | undefined, observed: number, unit: string) =>
    bound === undefined
      ? `... Output truncated (${observed} ${unit}).`
      : `... Output truncated at ${bound} ${unit} (observed ${observed}).`;
  const lines = note(maxLines, totals.stdoutLines + totals.stderrLines, 'lines');
  const bytes = note(maxBytes, totals.stdoutBytes + totals.stderrBytes, 'bytes');
  return [...(truncated.lines ? [lines] : []), ...(truncated.bytes ? [bytes] : [])];
}

function footer(result: Result, options: ModelTextOptions): string[] {
  const { outcome, exitCode, signal, shell } = result;
  const ended = signal === null ? `Exit code: ${exitCode}` : `Ended by ${signal}`;
  const state = shell.state === 'lost' ? 'was lost' : 'was kept in part';
  return [
    ...(outcome === 'failure' ? [ended] : []),
    ...aboutSandbox(result, options),
    ...(shell.state === 'kept' ? [] : [`The state of the shell ${state}${shell.reason ? `: ${shell.reason}` : ''}.`]),
  ];
}

/** Explains what the sandbox denied, and how a model asks to run outside the sandbox. */
function aboutSandbox(
  { denied, refused, outside, firstAttempt }: Result,
  { canEscalate = true }: ModelTextOptions,
): string[] {
  const ask = 'To ask for it to run outside the sandbox, submit it again with escalate and a justification.';
  if (denied !== undefined) {
    const advice = denied.mayAsk && canEscalate ? [ask] : [];
    const next = refused === undefined ? advice : [`It did not run outside the sandbox: ${refused}`];
    return [[describeDenied(denied), ...next].join('\n')];
  }
  if (outside === undefined) return [];
  const first =
    firstAttempt === undefined
      ? []
      : [`Its first attempt, inside, ended with exit code ${firstAttempt.exitCode}:\n${firstAttempt.output.trimEnd()}`];
  return [['It ran outside the sandbox.', ...first].join(' ')];
}

/**
 * Merges both streams with stderr marked, in the order in which the output was received, or stdout first if that order
 * is not known.
 */
export function markStderr(
  result: Pick<Result, 'stdout' | 'stderr' | 'output' | 'truncated'>,
  keep?: 'head' | 'tail' | 'head-tail',
): string {
  // A truncation marker at the end would repeat the notes that follow it.
  const bare = (text: string) => (isCut(result) && keep === 'head' ? text.replace(MARKER_AT_END, '') : text);
  const [stdout, stderr] = [linesOf(bare(result.stdout)), linesOf(bare(result.stderr))];
  const marked = attribute(linesOf(bare(result.output)), stdout, stderr, isCut(result));
  return (marked ?? [...stdout, ...stderr.map(mark)]).join('\n');
}

/**
 * Marks the lines of merged output that are from stderr. Returns undefined if a line is next in neither stream, because
 * it is mixed or cut.
 */
function attribute(merged: string[], stdout: string[], stderr: string[], isCut: boolean): string[] | undefined {
  const marked: string[] = [];
  let [fromStdout, fromStderr] = [0, 0];
  for (const [index, line] of merged.entries()) {
    const isNext = (next: string | undefined) =>
      next === line || (isCut && index === merged.length - 1 && next?.startsWith(line) === true);
    if (isNext(stdout[fromStdout])) {
      fromStdout += 1;
      marked.push(line);
    } else if (isNext(stderr[fromStderr])) {
      fromStderr += 1;
      marked.push(mark(line));
    } else return undefined;
  }
  return isCut || marked.length === stdout.length + stderr.length ? marked : undefined;
}

const MARKER_AT_END = /\n?\[\.\.\. \d+ bytes, \d+ lines omitted \.\.\.\]$/;
const mark = (line: string) => `[stderr] ${line}`;
const isCut = ({ truncated }: Pick<Result, 'truncated'>) => truncated.lines || truncated.bytes;

function linesOf(text: string): string[] {
  if (text === '') return [];
  return text.replace(/\n$/, '').split('\n');
}
