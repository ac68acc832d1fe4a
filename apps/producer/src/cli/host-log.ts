import type { HostLogLine } from '@shellfleet/client';
import { toPrintable, tryJson } from '@shellfleet/protocol';
import type { Context } from './context.ts';
import { parseTime } from './units.ts';

interface Flags {
  follow?: boolean;
  since?: string;
  tail?: number;
  json?: boolean;
}

/** Shows the last lines of the log of a host's worker. */
export async function showHostLog({ terminal, withFleet }: Context, host: string, flags: Flags): Promise<void> {
  const since = flags.since === undefined ? undefined : parseTime(flags.since);
  await withFleet(async (fleet) => {
    const { follow, tail } = flags;
    const signal = terminal.readerGone;
    const onUnreachable = () => terminal.say(`${host} does not reply. Its log goes on here when it does.`);
    try {
      for await (const line of fleet.hostLog(host, { since, tail, follow, signal, onUnreachable })) {
        if (line.restarted) terminal.say(`${host} has another worker process from here on.`);
        if (line.missed) terminal.say(describeMissed(line.missed));
        await terminal.line(flags.json === true ? line.text : formatLine(line));
      }
    } catch (error) {
      if (!terminal.readerGone.aborted) throw error;
    }
  });
}

function describeMissed(count: number): string {
  const [lines, are] = count === 1 ? ['1 line', 'is'] : [`${count} lines`, 'are'];
  return `${lines} before this ${are} not kept by the worker any more.`;
}

/** Fields that every line has, and that the host or the head of the line already says. */
const IN_HEAD = new Set(['level', 'time', 'pid', 'hostname', 'msg', 'host.id']);

/** Formats a line for a person: time, level, event, and the fields that differ from line to line. */
export function formatLine({ text }: Pick<HostLogLine, 'text'>): string {
  const fields = tryJson(text);
  if (typeof fields !== 'object' || fields === null || !('time' in fields)) return toPrintable(text);
  const { time, level, msg, ...others } = fields as Record<string, unknown>;
  const named = Object.entries(others).filter(([name]) => !IN_HEAD.has(name));
  const head = [new Date(Number(time)).toISOString(), String(level).padEnd(5), String(msg)];
  const shown = named.map(([name, value]) => `${name.replace(/^shellfleet\./, '')}=${formatValue(value)}`);
  return toPrintable([...head, ...shown].join(' '));
}

function formatValue(value: unknown): string {
  if (typeof value === 'object' && value !== null && 'message' in value && 'stack' in value)
    return JSON.stringify(value.message);
  return typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value);
}
