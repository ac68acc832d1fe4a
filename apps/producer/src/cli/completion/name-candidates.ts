import type { Fleet } from '@shellfleet/client';
import type { Candidate, Completion } from './complete-words.ts';

/** Most candidates that are yielded. The others appear once the prefix is longer. */
const MOST = 200;

/** Yields names of sessions, commands, hosts, tools or API keys that the fleet has now. */
export async function* nameCandidates(fleet: Fleet, { wants, prefix }: Completion): AsyncGenerator<Candidate> {
  let found = 0;
  for await (const candidate of namesOf(fleet, wants)) {
    if (!candidate.value.startsWith(prefix)) continue;
    yield candidate;
    found += 1;
    if (found === MOST) return;
  }
}

async function* namesOf(fleet: Fleet, wants: Completion['wants']): AsyncGenerator<Candidate> {
  if (wants === 'host') for (const { id, state } of await fleet.hosts()) yield { value: id, description: state };
  if (wants === 'key') for (const { id, name } of await fleet.keys.list()) yield { value: id, description: name };
  if (wants === 'tool') {
    for (const { name, description = '' } of await fleet.tools.list()) yield { value: name, description };
  }
  if (wants !== 'session' && wants !== 'session-path' && wants !== 'command') return;
  for await (const { id, state, runningCommandId } of fleet.sessions()) {
    if (wants === 'session') yield { value: id, description: state };
    else if (wants === 'session-path') yield { value: `${id}:`, description: state };
    else if (runningCommandId !== undefined) yield { value: runningCommandId, description: 'runs' };
  }
}
