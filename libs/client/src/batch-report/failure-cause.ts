import { stripVTControlCharacters } from 'node:util';
import { type Result, tryJson } from '@shellfleet/protocol';
import { type EndedBy, type TaskResult, verdictOf } from '../batch/task-result.ts';
import { commandsOf } from './task-facts.ts';

/** Why a task did not pass, in words that tasks with the same cause share. */
export interface FailureCause {
  title: string;
  /** The last line that the command printed, or the message of the error, without what differs from task to task. */
  line: string;
}

const MOST_LINES = 20;
const MOST_CHARACTERS = 1_500;
/** Longest line by which causes are told apart. */
const MOST_OF_A_LINE = 160;

const ENDED: Record<EndedBy, string> = {
  deadline: 'at the deadline of the task',
  'batch-deadline': 'at the deadline of the batch',
  failure: 'because another task did not pass',
  signal: 'because the batch was stopped',
};

/** Returns why a task did not pass. */
export function causeOf(result: TaskResult): FailureCause {
  const command = decidingCommand(result);
  const text = result.error?.message ?? endOf(textOf(result, command), 1);
  return { title: titleOf(result, command), line: withoutDetails(text, result).slice(0, MOST_OF_A_LINE) };
}

/** Returns the last lines that the command printed which decided about a task. They are redacted already. */
export function lastLinesOf(result: TaskResult): string {
  const printed = endOf(textOf(result, decidingCommand(result)), MOST_LINES);
  return [result.error?.message ?? '', printed].filter((part) => part !== '').join('\n');
}

/** Returns the first command that did not succeed, or else the grade, or else the last command. */
function decidingCommand(result: TaskResult): Result | undefined {
  const commands = commandsOf(result);
  return commands.find((command) => command !== result.grade && command.outcome !== 'success') ?? commands.at(-1);
}

function titleOf(result: TaskResult, command: Result | undefined): string {
  const { error, endedBy, endedIn, grade } = result;
  const step = command === undefined ? endedIn : command === grade ? 'grade' : stepOf(result, command);
  const inStep = step === undefined ? '' : ` in ${step}`;
  if (verdictOf(result) === 'cancelled') return `Cancelled ${ENDED[endedBy ?? 'signal']}`;
  if (endedBy === 'deadline') return `Stopped ${ENDED.deadline}${inStep}`;
  if (error !== undefined) return `${error.code}${endedIn === undefined ? '' : ` in ${endedIn}`}`;
  if (command === undefined) return `Ended as ${result.outcome}`;
  if (command === grade && (command.outcome === 'success' || command.outcome === 'failure'))
    return `The grade did not pass, exit code ${command.exitCode}`;
  return `${describeCommandEnd(command)}${inStep}`;
}

function stepOf({ setup = [] }: TaskResult, command: Result): string {
  return setup.includes(command) ? 'setup' : 'script';
}

function describeCommandEnd(command: Result): string {
  switch (command.outcome) {
    case 'success':
      return 'Did not pass';
    case 'failure':
      if (command.reason === 'oom') return 'Out of memory';
      if (command.reason === 'host-memory') return 'The host was out of memory';
      return command.signal === null ? `Exit code ${command.exitCode}` : `Ended by ${command.signal}`;
    case 'timeout':
      return { wall: 'Timeout', 'no-output': 'Timeout without output', 'not-started': 'Not started in time' }[
        command.reason
      ];
    case 'denial':
      return `Denied by ${command.reason === 'rules' ? 'rules' : 'a person'}`;
    case 'blocked':
      return `Output withheld (${command.blocked.type})`;
    case 'lost':
      return { 'host-lost': 'Host lost', 'container-removed': 'Container removed', redis: 'Lost with Redis' }[
        command.reason ?? 'redis'
      ];
    case 'error':
      return command.error.code;
    case 'cancellation':
      return 'Cancelled';
  }
}

/** Returns what the command printed, without the codes of a terminal and without the score of a grade. */
function textOf({ grade }: TaskResult, command: Result | undefined): string {
  const text = stripVTControlCharacters(command?.output ?? '')
    .replaceAll(/\r\n?/g, '\n')
    .trimEnd();
  const lastBreak = text.lastIndexOf('\n');
  return command === grade && lastBreak !== -1 && isScore(text.slice(lastBreak + 1)) ? text.slice(0, lastBreak) : text;
}

const isScore = (line: string) => ['number', 'object'].includes(typeof tryJson(line));

function endOf(text: string, lines: number): string {
  const kept = text.split('\n').slice(-lines).join('\n').slice(-MOST_CHARACTERS).toWellFormed();
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a page would show nothing for them.
  return kept.replaceAll(/[\0-\x08\x0b-\x1f\x7f]/g, '\ufffd');
}

/** Replaces the id of the task, numbers and hashes, which differ between tasks with the same cause. */
function withoutDetails(text: string, { id, task, sessionId }: TaskResult): string {
  const line = text.trim();
  const named = [sessionId, id, task].reduce((all, name) => (name.length < 3 ? all : all.replaceAll(name, '…')), line);
  return named.replaceAll(/\b(?:0x)?[0-9a-f]{8,}\b|\d+(?:\.\d+)*/gi, '#').trim();
}
