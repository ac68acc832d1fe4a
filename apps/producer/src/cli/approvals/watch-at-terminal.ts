import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '@shellfleet/client';
import { ensureShellfleetError } from '@shellfleet/protocol';
import type { Context } from '../context.ts';
import { type Screen, type ScreenControls, showFullScreen } from '../full-screen.ts';
import { ApprovalsScreen, type ScreenAnswer } from './approvals-screen.ts';
import { isSame } from './screen-texts.ts';

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
  const show = ({ draw, leave }: ScreenControls): Screen => {
    const screen = new ApprovalsScreen(tenant);
    const send = async (answer: ScreenAnswer) => {
      const problem = await give(fleet, answer, answeredBy).catch((error: unknown) => describeError(error));
      screen.sent(problem === undefined, problem ?? (answer.type === 'deny' ? 'Denied.' : 'Approved.'));
      draw();
    };
    const lookAtFleet = async (signal: AbortSignal) => {
      while (!signal.aborted) {
        if (screen.warn(await findProblem(fleet))) draw();
        await delay(LOOK_AT_FLEET_MS, undefined, { signal }).catch(() => {});
      }
    };
    return {
      draw: (rows, columns) => screen.draw(rows, columns),
      press(key) {
        const action = screen.press(key);
        if (action?.type === 'leave') leave(0);
        if (action?.type === 'answer') void send(action.answer);
      },
      async follow(signal) {
        void lookAtFleet(signal);
        for await (const approval of fleet.approvals.watch({ signal })) draw({ rings: screen.show(approval) });
      },
    };
  };
  context.setExitCode(await showFullScreen(context.terminal, show));
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
