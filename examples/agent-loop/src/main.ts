import { parseArgs } from 'node:util';
import { Fleet, type Result, type Session, toModelText } from '@shellfleet/client';
import { type Action, decide, type ReadLate } from './model.ts';

// An agent's loop: a model decides on an action, the action runs in the agent's session, and the model reads its
// result. Here a script stands in for the model. The session is one shell: variables, files and the server in the
// background last from one turn to the next.

const { session: id } = parseArgs({ options: { session: { type: 'string', default: 'agent-loop' } } }).values;
const mostTurns = 20;

async function main(): Promise<number> {
  await using fleet = await Fleet.connect();
  const session = await fleet.session(id);
  try {
    return await loop(fleet, session);
  } finally {
    await session.close();
  }
}

async function loop(fleet: Fleet, session: Session): Promise<number> {
  const observations: string[] = [];
  for (let turn = 1; turn <= mostTurns; turn += 1) {
    const { thought, action } = decide(observations);
    console.log(`\n${turn}. ${thought}`);
    if (action.type === 'done') return action.succeeded ? 0 : 1;
    const observation = await act(fleet, session, action);
    console.log(observation.replaceAll(/^/gm, '   | '));
    observations.push(observation);
  }
  console.error(`The agent did not finish in ${mostTurns} turns.`);
  return 1;
}

/** Carries out an action, and returns what the model gets to read. */
async function act(fleet: Fleet, session: Session, action: Exclude<Action, { type: 'done' }>): Promise<string> {
  switch (action.type) {
    case 'write':
      await session.files.write(action.path, action.text);
      return `wrote ${action.path}`;
    case 'run': {
      const result = await session.run(action.script, { timeoutMs: 30_000 });
      return `command ${result.commandId}\n${describe(result)}`;
    }
    case 'read-late':
      return readLate(fleet, session, action);
    case 'list-background': {
      const { background } = await session.info();
      return background.map(({ command }) => command).join('\n') || 'nothing runs in the background';
    }
  }
}

function describe(result: Result): string {
  return toModelText(result, { timeoutMs: 30_000 }).text;
}

/** Waits until a background process of the command has printed something. */
async function readLate(fleet: Fleet, session: Session, { commandId, until }: ReadLate): Promise<string> {
  for await (const event of session.events({ signal: AbortSignal.timeout(30_000) })) {
    if (event.type !== 'command.output' || event.commandId !== commandId) continue;
    const log = await readLog(fleet, commandId);
    if (log.includes(until)) return log;
  }
  return `The session was closed before ${commandId} printed ${until}.`;
}

/** Reads the log of a command, which includes what its background processes printed after its end. */
async function readLog(fleet: Fleet, commandId: string): Promise<string> {
  const pieces: Uint8Array[] = [];
  const command = await fleet.command(commandId);
  for await (const { data } of command.log()) pieces.push(data);
  return Buffer.concat(pieces).toString();
}

process.exitCode = await main();
