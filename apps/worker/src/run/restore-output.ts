import { type Entry, type Owner, retryWhileRedisIsDown, toQueueError } from '@shellfleet/mailbox';
import { decodeOutputEntry } from '@shellfleet/protocol';
import type { CommandLog } from '../host-log/host-log.ts';
import type { CleanOutput } from '../output/clean-output.ts';

const PAGE = 200;

/** Restores the chain of an adopted entry from its stored output: first from the session's stream, then from the host's log. */
export async function restoreOutput(
  clean: CleanOutput,
  entry: Entry,
  owner: Owner,
  log: CommandLog,
  signal: AbortSignal,
): Promise<void> {
  const id = Buffer.from(entry.id);
  let after = `${entry.startedAt > 0 ? entry.startedAt - 1 : 0}`;
  for (;;) {
    const page = await retryWhileRedisIsDown(() => readPage(owner, after), signal);
    for (const [, fields] of page) {
      const [, type, , command, , data] = fields;
      if (type?.toString() !== 'command.output' || command === undefined || !command.equals(id) || data === undefined)
        continue;
      const output = decodeOutputEntry(data);
      if (output !== undefined) clean.restoreEntry(output);
    }
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) break;
    after = last[0].toString();
  }
  for (const piece of await log.restore()) clean.restoreOverflow(piece);
}

function readPage({ redis, keys }: Owner, after: string) {
  return redis.xrangeBuffer(keys.stream, `(${after}`, '+', 'COUNT', PAGE).catch((error: unknown) => {
    throw toQueueError(error);
  });
}
