import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Fleet, isShellfleetError, type Session } from '@shellfleet/client';
import type { ClientEvent, Mark, Operation, SessionHistory } from '../history/history.ts';
import { MARKS_FILE, operationsOf } from '../plan/operations.ts';
import type { ClientSession } from './client-task.ts';

const READ_WITHIN_MS = 60_000;

/** Reads the marks and the terminal events of the sessions after the run. */
export function collectSessions(
  fleet: Fleet,
  seed: number,
  events: ClientEvent[],
  sessions: ClientSession[],
): Promise<SessionHistory[]> {
  const submitted = new Set(events.map(({ op }) => op));
  return Promise.all(
    sessions.map(async ({ id, leaseMs, workspace, spec }) => {
      const session = await fleet.session(id, spec);
      // The terminal events are read first, because reading the file is a command, too.
      const terminals = await readTerminals(session);
      const text =
        workspace === undefined
          ? await readMarks(session)
          : await readFile(join(workspace, 'marks'), 'utf8').catch(() => '');
      return { session: id, leaseMs, operations: plannedOf(seed, id, submitted), marks: toMarks(text), terminals };
    }),
  );
}

async function readMarks(session: Session): Promise<string> {
  const deadline = Date.now() + READ_WITHIN_MS;
  for (;;) {
    try {
      return await session.files.readText(MARKS_FILE);
    } catch (error) {
      if (isShellfleetError(error) && error.code === 'FILE_NOT_FOUND') return '';
      if (!isShellfleetError(error) || !error.retryable || Date.now() > deadline) throw error;
      await delay(200);
    }
  }
}

async function readTerminals(session: Session): Promise<SessionHistory['terminals']> {
  const terminals: SessionHistory['terminals'] = [];
  for await (const { type, commandId, data } of session.events({ follow: false })) {
    if (type !== 'command.completed' || commandId === undefined) continue;
    terminals.push({ commandId, outcome: (data as { outcome: string }).outcome });
  }
  return terminals;
}

function plannedOf(seed: number, session: string, submitted: ReadonlySet<string>): Operation[] {
  const planned: Operation[] = [];
  for (const operation of operationsOf(seed, session)) {
    if (!submitted.has(operation.id)) return planned;
    planned.push(operation);
  }
  return planned;
}

function toMarks(text: string): Mark[] {
  return text.split('\n').flatMap((line): Mark[] => {
    const [type, op = ''] = line.split(' ');
    return type === 'begin' || type === 'end' ? [{ type, op }] : [];
  });
}
