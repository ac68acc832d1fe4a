import type { Fleet, Command as FleetCommand, ReceiptStep, Result, Session } from '@shellfleet/client';
import { toPrintable } from '@shellfleet/protocol';
import type { Command } from 'commander';
import { jsonFlag } from '../command-flags.ts';
import type { Context } from '../context.ts';
import { findById } from '../find-by-id.ts';
import type { CliOutput } from '../terminal.ts';
import { describeMs } from '../units.ts';
import { describeReceipt } from './describe-receipt.ts';
import { describeWait } from './describe-wait.ts';
import { drawReceipt } from './draw-receipt.ts';
import { readHistory } from './read-history.ts';

/** Columns of the drawing where stdout is no terminal, or a terminal of unknown width. */
const USUAL_WIDTH = 80;

export function registerExplain(program: Command, context: Context): void {
  program
    .command('explain')
    .description('show where the time of a command went, or why a session waits now')
    .argument('<command|session>')
    .addOption(jsonFlag())
    .action((id: string, flags: { json?: boolean }) => explain(context, id, flags.json === true));
}

async function explain({ terminal, withFleet }: Context, id: string, json: boolean): Promise<void> {
  await withFleet(async (fleet) => {
    const found = await findById(fleet, id);
    if (!('log' in found)) return explainSession(fleet, found, terminal, json);
    const result = await found.resultNow();
    const session = await fleet.attach(found.sessionId);
    if (result !== undefined) return explainResult(result, session, terminal, json);
    await explainUnended(found, fleet, session, terminal, json);
  });
}

async function explainSession(fleet: Fleet, session: Session, terminal: CliOutput, json: boolean): Promise<void> {
  const { info, because } = await readWait(fleet, session);
  if (json) return terminal.json({ ...info, because });
  for (const sentence of because) await terminal.line(toPrintable(sentence));
}

/** Explains a command that waits or runs. */
async function explainUnended(
  { id: commandId, sessionId }: FleetCommand,
  fleet: Fleet,
  session: Session | undefined,
  terminal: CliOutput,
  json: boolean,
): Promise<void> {
  const wait = session === undefined ? undefined : await readWait(fleet, session);
  const state = wait?.info.runningCommandId === commandId ? 'running' : 'waiting';
  const because = wait?.because ?? [];
  if (json) return terminal.json({ commandId, sessionId, state, because });
  await terminal.line(`${commandId} has not ended: it is ${state}.`);
  for (const sentence of because) await terminal.line(toPrintable(sentence));
}

async function readWait(fleet: Fleet, session: Session) {
  const info = await session.info();
  const [hosts, questions] = await Promise.all([
    fleet.hosts(),
    info.heldCommandId === undefined ? [] : fleet.approvals.list({ sessionId: info.id }),
  ]);
  return { info, because: describeWait({ info, hosts, questions }) };
}

async function explainResult(
  result: Result,
  session: Session | undefined,
  terminal: CliOutput,
  json: boolean,
): Promise<void> {
  const { commandId, sessionId, outcome, receipt, usage } = result;
  const [history, start] = await Promise.all([readHistory(session, result), readStart(session, result)]);
  const because = describeReceipt(result, history, start);
  if (json) return terminal.json({ commandId, sessionId, state: 'ended', outcome, receipt, usage, because });
  if (receipt === undefined) return terminal.line(`${commandId} ended as ${outcome}. Its times are not known.`);
  const { acceptedAt, totalMs } = receipt;
  await terminal.line(
    `${commandId} ended as ${outcome}, ${describeMs(totalMs)} after it was accepted at ${acceptedAt}.`,
  );
  await terminal.line('');
  const { isTTY, columns } = process.stdout;
  const style = isTTY ? { width: columns || USUAL_WIDTH, mark: '█' } : { width: USUAL_WIDTH, mark: '#' };
  for (const { step, before, bar, after } of drawReceipt(receipt, style)) {
    await terminal.line(`${before}${paint(terminal, step)(bar)}${after}`.trimEnd());
  }
  await terminal.line('');
  for (const sentence of because) await terminal.line(toPrintable(sentence));
  await terminal.line('The last column names the clock that measured a part: that of Redis, or that of the host.');
}

/** Returns how the shell of the command began, if the session still has that shell. */
async function readStart(session: Session | undefined, { shell }: Result) {
  const info = await session?.info().catch(() => undefined);
  return info?.epoch === shell.epoch ? info : undefined;
}

function paint({ colors }: CliOutput, step: ReceiptStep): (text: string) => string {
  if (!process.stdout.isTTY) return (text) => text;
  if (step === 'running') return colors.green;
  return step === 'storing' ? colors.dim : colors.yellow;
}
