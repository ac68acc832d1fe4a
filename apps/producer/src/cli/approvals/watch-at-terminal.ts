import { emitKeypressEvents } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '@shellfleet/client';
import { withResolvers } from '@shellfleet/concurrency';
import { ensureShellfleetError } from '@shellfleet/protocol';
import type { Context } from '../context.ts';
import { ENDING_SIGNALS } from '../ending-signals.ts';
import { exitCodeOfSignal } from '../exit-codes.ts';
import { ApprovalsScreen, type KeyPress, type ScreenAnswer } from './approvals-screen.ts';
import { isSame } from './screen-texts.ts';

// Control sequences that enter the alternate screen and hide the cursor, and that undo both.
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l\r';
const HOME = '\u001b[H';
const CLEAR_TO_END_OF_ROW = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const BELL = '\u0007';
const LOOK_AT_FLEET_MS = 3_000;

/**
 * Shows questions and gives the answers of the person at this terminal, until the person leaves. Then restores the
 * terminal. The default of `answeredBy` is the name of user and machine.
 */
export async function watchAtTerminal(
  context: Context,
  fleet: Fleet,
  { tenant, answeredBy }: { tenant: string; answeredBy: string | undefined },
): Promise<void> {
  const screen = new ApprovalsScreen(tenant);
  const left = withResolvers<number>();
  const stopped = new AbortController();
  let hasLeft = false;
  let isDrawing = false;
  let rings = false;
  // Draws once for several changes that arrive together.
  const draw = () => {
    if (isDrawing) return;
    isDrawing = true;
    setImmediate(() => {
      isDrawing = false;
      if (hasLeft) return;
      const { rows, columns } = localSize();
      // A row that fills the last column would lose its end.
      const drawn = screen.draw(rows, columns - 1).map((row) => `${row}${CLEAR_TO_END_OF_ROW}`);
      void context.terminal.write('stdout', `${HOME}${drawn.join('\r\n')}${CLEAR_BELOW}${rings ? BELL : ''}`);
      rings = false;
    });
  };
  const send = async (answer: ScreenAnswer) => {
    const problem = await give(fleet, answer, answeredBy).catch((error: unknown) => describeError(error));
    screen.sent(problem === undefined, problem ?? (answer.type === 'deny' ? 'Denied.' : 'Approved.'));
    draw();
  };
  const onKey = (text: string | undefined, { name, ctrl }: { name?: string; ctrl?: boolean } = {}) => {
    const key: KeyPress = { name, ctrl, text };
    const action = screen.press(key);
    if (action?.type === 'leave') left.resolve(0);
    if (action?.type === 'answer') void send(action.answer);
    draw();
  };
  const watching = (async () => {
    for await (const approval of fleet.approvals.watch({ signal: stopped.signal })) {
      rings = screen.show(approval) || rings;
      draw();
    }
  })();
  watching.catch(left.reject);
  const lookAtFleet = async () => {
    while (!stopped.signal.aborted) {
      if (screen.warn(await findProblem(fleet))) draw();
      await delay(LOOK_AT_FLEET_MS, undefined, { signal: stopped.signal }).catch(() => {});
    }
  };
  const leaveBySignal = (signal: NodeJS.Signals) => left.resolve(exitCodeOfSignal(signal));
  const onEnd = () => leaveBySignal('SIGHUP');
  const { stdin, stdout } = process;
  for (const signal of ENDING_SIGNALS) process.on(signal, leaveBySignal);
  context.terminal.readerGone.addEventListener('abort', onEnd);
  stdout.on('resize', draw);
  emitKeypressEvents(stdin);
  stdin.on('keypress', onKey).on('end', onEnd).on('error', onEnd);
  try {
    stdin.setRawMode(true);
    stdin.resume();
    stdout.write(ENTER);
    draw();
    void lookAtFleet();
    context.setExitCode(await left.promise);
  } finally {
    hasLeft = true;
    stdin.off('keypress', onKey).pause();
    stdout.off('resize', draw);
    stdin.setRawMode(false);
    stdout.write(LEAVE);
    stopped.abort();
    await watching.catch(() => {});
    for (const signal of ENDING_SIGNALS) process.off(signal, leaveBySignal);
  }
}

/** Returns why the shown questions may be out of date or why answers wait, or '' if there is no problem. */
async function findProblem(fleet: Fleet): Promise<string> {
  try {
    const hosts = await fleet.hosts();
    return hosts.every(({ state }) => state === 'unreachable') ? 'No host is up: answers wait for one.' : '';
  } catch (error) {
    return ensureShellfleetError(error).message;
  }
}

/** Gives an answer, unless the question has changed since the person read it. Returns why not, if it was not given. */
async function give(fleet: Fleet, answer: ScreenAnswer, answeredBy: string | undefined): Promise<string | undefined> {
  const { approval } = answer;
  const by = answeredBy === undefined ? {} : { answeredBy };
  if (answer.type === 'deny') {
    await fleet.approvals.deny(approval.id, answer.reason || undefined, { abort: answer.abort, ...by });
    return undefined;
  }
  const pending = (await fleet.approvals.list()).find(({ id }) => id === approval.id);
  if (pending !== undefined && !isSame(pending, approval))
    return 'It has changed. Read it again before you approve it.';
  await fleet.approvals.approve(approval.id, { scope: answer.scope, ...by });
  return undefined;
}

function describeError(error: unknown): string {
  const { message, code } = ensureShellfleetError(error);
  return `${message} (${code})`;
}

/** Returns the size of the terminal, or 24 by 80 if it is unknown. */
function localSize(): { rows: number; columns: number } {
  return { rows: process.stdout.rows || 24, columns: process.stdout.columns || 80 };
}
