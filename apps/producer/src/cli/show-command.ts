import type { Command, OmittedBecause, OutputChunk, Result, Session, ShellfleetError } from '@shellfleet/client';
import { describeBlocked, describeDenied } from '@shellfleet/protocol';
import type { Context } from './context.ts';
import { EXIT_CANCELLED, EXIT_OWN_FAILURE, exitCodeOfResult, exitCodeOfSignal } from './exit-codes.ts';
import { sayRedactedFormats } from './redacted-formats.ts';
import type { CliOutput } from './terminal.ts';
import { type WaitingWatch, watchWaiting } from './watch-waiting.ts';

/** Reasons with which the command line itself cancels commands. For these cancellations it prints no message. */
const INTERRUPTED = 'interrupted by its caller';
const READER_GONE = 'the reader of its output has gone';
/** Longest wait after a signal for the cancellation of a command that no host can run. */
const CANCEL_MS = 2_000;

/**
 * Submits a command, shows its output and progress, and sets its exit code. Stdout throttles the command, so that no
 * output is lost; if some is missing, the exit code differs. Returns the command's Result.
 */
export async function showOwnCommand(
  context: Context,
  session: Session,
  submit: () => Promise<Command>,
  options: { json: boolean; startDeadlineMs?: number | undefined },
): Promise<Result> {
  const { terminal } = context;
  using signals = listenForSignals(terminal);
  const command = await submit();
  signals.accepted(command);
  if (options.json) await terminal.json({ type: 'accepted', commandId: command.id, sessionId: session.id });
  // Cancels the command, because stdout has no reader for the rest, as after a pipe into `head`.
  terminal.readerGone.addEventListener('abort', () => void command.cancel(READER_GONE).catch(() => {}));
  let hopeless: ShellfleetError | undefined;
  let hasOutput = false;
  using watch = watchWaiting(terminal, session, {
    startDeadlineMs: options.startDeadlineMs,
    // While a slow reader takes the output of this command, the next one may run.
    isBehind: (running) => running !== command.id && !hasOutput,
    onHopeless: (reason) => {
      hopeless = reason;
      void command.cancel(reason.message).catch(() => {});
    },
  });
  signals.watched(watch);
  let missingBytes = 0;
  for await (const chunk of command.output()) {
    hasOutput = true;
    if (terminal.readerGone.aborted) break;
    if (chunk.omittedBecause !== 'withheld') missingBytes += chunk.omittedBytes ?? 0;
    await showChunk(terminal, chunk, options.json, command.id);
  }
  const result = await command.result();
  if (hopeless !== undefined && result.outcome === 'cancellation') throw hopeless;
  await showResult(context, result, options.json);
  const isWhole = missingBytes === 0 || terminal.readerGone.aborted;
  if (isWhole || !['success', 'failure'].includes(result.outcome)) return result;
  terminal.say(`${missingBytes} bytes of its output did not come, so the exit code is not that of ${command.id}.`);
  context.setExitCode(EXIT_OWN_FAILURE);
  return result;
}

export async function showChunk(
  terminal: CliOutput,
  chunk: OutputChunk,
  json: boolean,
  commandId?: string,
): Promise<void> {
  const { id, stream, seq, data, text, omittedBytes, omittedBecause } = chunk;
  if (json) {
    const base64 = Buffer.from(data).toString('base64');
    return terminal.json({
      ...{ type: 'output', id, stream, seq, text, base64 },
      ...(omittedBytes ? { omittedBytes, omittedBecause } : {}),
    });
  }
  if (omittedBytes && omittedBecause)
    terminal.say(`${omittedBytes} bytes of ${stream} are missing here: ${whyMissing(omittedBecause, commandId)}`);
  if (data.byteLength > 0) await terminal.write(stream, data);
}

function whyMissing(because: OmittedBecause, commandId = 'COMMAND'): string {
  switch (because) {
    case 'over-budget':
      return `the session's stream does not carry them (output.streamBytes). \`shellfleet logs ${commandId}\` shows what the host has of them.`;
    case 'withheld':
      return 'a redaction rule that blocks has withheld them. They are stored nowhere.';
    case 'trimmed':
      return `they were trimmed from the session's stream since. \`shellfleet logs ${commandId}\` shows what is left.`;
  }
}

/** Shows the Result, with messages for the parts that the exit code does not show. */
export async function showResult(context: Context, result: Result, json: boolean): Promise<void> {
  const { terminal } = context;
  terminal.clearProgress();
  context.setExitCode(exitCodeOfResult(result));
  if (json) return terminal.json(result);
  if (result.blocked !== undefined) terminal.say(describeBlocked(result.blocked));
  if (result.error !== undefined) terminal.say(`${result.error.message} (${result.error.code})`);
  else if (result.outcome === 'denial') terminal.say(result.stderr.trim());
  else if (result.reason === 'not-started')
    terminal.say(`${result.commandId} did not start in time, so it was not run.`);
  else if (result.outcome === 'timeout')
    terminal.say(`${result.commandId} was stopped at its time limit (${result.reason ?? 'wall'}).`);
  else if (result.cancelReason !== undefined && ![READER_GONE, INTERRUPTED].includes(result.cancelReason))
    terminal.say(`${result.commandId} was cancelled: ${result.cancelReason}.`);
  else if (result.outcome === 'lost')
    terminal.say(`${whatWasLost(result)}, so it is not known whether it took effect.`);
  else if (result.reason === 'oom')
    terminal.say(
      `The kernel killed a process of ${result.commandId}, because its sandbox reached its limit of memory. --memory sets that of a session when it is opened.`,
    );
  else if (result.reason === 'host-memory')
    terminal.say(`The kernel killed a process of ${result.commandId}, because the memory of its host ran out.`);
  await sayRedactedFormats(terminal, [result]);
  if (result.denied !== undefined) terminal.say(describeDenied(result.denied));
  if (result.refused !== undefined) terminal.say(`It did not run outside the sandbox: ${result.refused}`);
  if (result.outside) terminal.say(`${result.commandId} ran outside the sandbox of its session.`);
  if (result.shell.state !== 'kept' && result.outcome !== 'error') {
    const { state, reason } = result.shell;
    terminal.say(
      `The state of the shell was ${state === 'lost' ? 'lost' : 'kept in part'}${reason === undefined ? '' : `: ${reason}`}.`,
    );
  }
}

function whatWasLost({ commandId, reason }: Result): string {
  if (reason === undefined) return `${commandId} had begun before Redis came back with an older state`;
  return `The ${reason === 'container-removed' ? 'sandbox' : 'host'} of ${commandId} was lost`;
}

/**
 * Handles signals: the first Ctrl-C cancels the command, once it is accepted, and the second ends this process. After a
 * hang-up the command still runs, unless it waits for stdin from this process.
 */
function listenForSignals(
  terminal: CliOutput,
): Disposable & { accepted(command: Command): void; watched(watch: WaitingWatch): void } {
  let command: Command | undefined;
  let watch: WaitingWatch | undefined;
  let interrupted = false;
  let hasItsStdin = false;
  const cancel = () => {
    command?.cancel(INTERRUPTED).catch((error: unknown) => terminal.fail(error));
  };
  const interrupt = () => {
    if (interrupted) process.exit(EXIT_CANCELLED);
    interrupted = true;
    terminal.say(`Cancelling ${command?.id ?? 'the command'}; Ctrl-C again leaves at once.`);
    cancel();
  };
  const leave = (signal: NodeJS.Signals) => {
    if (command !== undefined && watch?.noHostReason !== undefined) {
      terminal.say(`Leaving; no live host can run ${command.id}, so it is cancelled.`);
      const leaveNow = () => process.exit(exitCodeOfSignal(signal));
      setTimeout(leaveNow, CANCEL_MS);
      // The verb then closes its session, and ends.
      return void command.cancel(READER_GONE).catch(leaveNow);
    }
    if (command === undefined) terminal.say('Leaving.');
    else if (hasItsStdin) terminal.say(`Leaving; it goes on as ${command.id}.`);
    else
      terminal.say(
        `Leaving before its stdin was sent to the end, so ${command.id} is stopped within a few seconds (STDIN_INCOMPLETE).`,
      );
    process.exit(exitCodeOfSignal(signal));
  };
  process.on('SIGINT', interrupt).on('SIGHUP', leave).on('SIGTERM', leave);
  return {
    accepted(own) {
      command = own;
      void own.stdinSent().then(() => {
        hasItsStdin = true;
      });
      if (interrupted) cancel();
    },
    watched(own) {
      watch = own;
    },
    [Symbol.dispose]: () => void process.off('SIGINT', interrupt).off('SIGHUP', leave).off('SIGTERM', leave),
  };
}
