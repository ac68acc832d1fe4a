import { parseArgs } from 'node:util';
import { Fleet, type PrefixRule, type Result, type Session, toModelText } from '@shellfleet/client';
import { nextTurn, repository, TEST } from './agent.ts';

// An agent works on a small repository. Commands that are known to be harmless run at once. All others wait for a
// person, who answers from anywhere: `shellfleet approvals watch` in another terminal. While the agent waits, no
// process holds the question: the agent's program, the host and Redis may all start again.

const { session: id } = parseArgs({ options: { session: { type: 'string', default: 'agent-with-approvals' } } }).values;

async function main(): Promise<number> {
  await using fleet = await Fleet.connect();
  // A person is asked about file operations too. The files that this program itself writes are allowed, because they
  // are not the agent's.
  const execPolicy: PrefixRule[] = [{ pattern: ['files.write', '/workspace/repo'], decision: 'allow' }];
  const session = await fleet.session(id, { approval: 'unless-trusted', approvalTimeoutMs: 3_600_000, execPolicy });
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

async function work(session: Session): Promise<number> {
  for (const [path, text] of Object.entries(repository)) await session.files.write(path, `${text}\n`);
  const results: Result[] = [];
  let passes = false;
  for (let turn = nextTurn(results); turn !== undefined; turn = nextTurn(results)) {
    console.log(`\n${results.length + 1}. ${turn.thought}\n   $ ${turn.script}`);
    const result = await run(session, turn.script);
    console.log(toModelText(result).text.replaceAll(/^/gm, '   | '));
    results.push(result);
    if (turn.script === TEST) passes = result.outcome === 'success';
  }
  return passes ? 0 : 1;
}

/** Runs a script. Prints a message when the command begins to wait for a person. */
async function run(session: Session, script: string): Promise<Result> {
  const command = await session.submit(script);
  const done = new AbortController();
  const telling = tellOfQuestion(session, command.id, done.signal);
  const result = await command.result();
  done.abort();
  await telling;
  return result;
}

async function tellOfQuestion(session: Session, commandId: string, signal: AbortSignal): Promise<void> {
  try {
    for await (const event of session.events({ signal })) {
      if (event.commandId !== commandId) continue;
      if (event.type === 'approval.requested') console.log('   (waits for a person)');
      if (event.type === 'command.completed') return;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

process.exitCode = await main();
