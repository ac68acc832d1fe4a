import type { ApprovalAnsweredData, Result, Session, SessionEvent } from '@shellfleet/client';

/** What the events of a session tell about one of its commands. */
export interface CommandHistory {
  /** Command that ended last before this one started. */
  earlierId?: string;
  /** Last answer to a question about the command. */
  answer?: ApprovalAnsweredData;
  /** Hosts that did not answer between its acceptance and its end. */
  unreachable: string[];
  /** Whether a worker adopted the shell before the command started, or while it ran. */
  adopted?: 'waiting' | 'running';
  /** Why the shell was lost between its acceptance and its end. */
  lossReason?: string;
}

/** Most events that are read. A session with more output tells less. */
const MOST_EVENTS = 20_000;

/** Reads the events from the acceptance of an ended command to its end. Older events may have been trimmed. */
export async function readHistory(session: Session | undefined, result: Result): Promise<CommandHistory> {
  const history: CommandHistory = { unreachable: [] };
  const { receipt, commandId } = result;
  if (session === undefined || receipt === undefined) return history;
  const after = `${Math.max(0, Date.parse(receipt.acceptedAt) - 1)}-0`;
  let left = MOST_EVENTS;
  let isStarted = false;
  for await (const event of session.events({ after, follow: false })) {
    if (event.type === 'command.started' && event.commandId === commandId) isStarted = true;
    if (event.type === 'command.completed' && event.commandId === commandId) break;
    note(event, history, commandId, isStarted);
    left -= 1;
    if (left === 0) break;
  }
  return history;
}

function note(event: SessionEvent, history: CommandHistory, commandId: string, isStarted: boolean): void {
  switch (event.type) {
    case 'command.completed':
      if (!isStarted) history.earlierId = event.data.commandId;
      break;
    case 'approval.answered':
      if (event.commandId === commandId) history.answer = event.data;
      break;
    case 'host.unreachable':
      history.unreachable.push(event.data.hostId);
      break;
    case 'session.adopted':
      history.adopted = isStarted ? 'running' : 'waiting';
      break;
    case 'session.lost':
      history.lossReason = event.data.reason;
      break;
  }
}
