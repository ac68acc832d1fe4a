import type { Fleet } from '@shellfleet/client';
import { parseAuditChain } from '@shellfleet/protocol';
import { auditKeys, createSealer, openAuditRecords, parseAuditLine } from '@shellfleet/sealing';
import type { CliOutput } from './terminal.ts';
import { parseTime } from './units.ts';

// EXPORT-1. Each line has its position: the entry in Redis and the number of the record in it. An export that goes on
//     behind the position of the last whole line that was taken has no gap, and no line twice.
// EXPORT-2. An entry that somebody has added again is left out: its records are printed once, and make no gap.
// EXPORT-3. What is missing in a chain is told on stderr, and the export goes on.

export interface ExportFlags {
  follow?: boolean;
  since?: string;
  codes?: boolean;
}

/** Where an export begins: at the first entry of a time, or behind some records of an entry. */
interface Start {
  entry: string;
  records?: number;
}

/** Prints the records of the audit in Redis, as JSON. */
export async function exportStream(
  fleet: Fleet,
  terminal: Pick<CliOutput, 'line' | 'json' | 'say' | 'readerGone'>,
  sealKeys: readonly string[],
  { follow, since, codes }: ExportFlags,
): Promise<void> {
  const { namespace } = await fleet.auditChains();
  const start = since === undefined ? undefined : toStart(since);
  const sealer = createSealer(sealKeys);
  const newest = new Map<string, number>();
  let first: string | undefined;
  for await (const entry of fleet.auditRecords({ from: start?.entry, follow, signal: terminal.readerGone })) {
    first ??= entry.id;
    if (first === entry.id && first !== start?.entry && start?.records !== undefined)
      terminal.say(`The entry of ${since} was removed, and perhaps others behind it before they were exported.`);
    const name = parseAuditChain(entry.chain);
    const lines = name && openAuditRecords(sealer, namespace, { ...entry, chain: name });
    if (name === undefined || lines === undefined) {
      terminal.say(`The entry ${entry.id} is left out: it was altered, or sealed with a key that is not given.`);
      continue;
    }
    const next = (newest.get(entry.chain) ?? entry.first - 1) + 1;
    if (entry.first < next) {
      terminal.say(`The entry ${entry.id} is left out: records of ${entry.chain} up to ${next - 1} were before it.`);
      continue;
    }
    if (entry.first > next) terminal.say(`Records ${next} to ${entry.first - 1} of ${entry.chain} are missing.`);
    newest.set(entry.chain, entry.first + lines.length - 1);
    const keys = auditKeys(sealKeys, { namespace, ...name });
    const taken = entry.id === start?.entry ? (start.records ?? 0) : 0;
    for (const [index, line] of lines.entries()) {
      if (index < taken) continue;
      const position = `${entry.id}/${index + 1}`;
      const parsed = parseAuditLine(line, keys);
      if (codes) await terminal.line(withNames(line, { position, namespace, ...name }));
      else if (parsed?.authentic)
        await terminal.json({ position, ...name, n: parsed.record.n, at: parsed.record.at, ...parsed.record.event });
    }
  }
}

/** Adds fields at the beginning of a line of an audit. */
function withNames(line: string, names: object): string {
  return `${JSON.stringify(names).slice(0, -1)},${line.slice(1)}`;
}

/** Parses a position that an export printed, or a time. */
function toStart(since: string): Start {
  const [, entry, records] = /^(\d+-\d+)\/(\d+)$/.exec(since) ?? [];
  return entry === undefined ? { entry: String(+parseTime(since)) } : { entry, records: Number(records) };
}
