import { newResult } from '@shellfleet/protocol';
import type { EntryResult, EntryRun } from './entry-run.ts';
import { resultBase } from './results.ts';
import { runOnShell } from './run-on-shell.ts';
import type { SessionContext } from './session-context.ts';

export async function runRestart(run: EntryRun, session: SessionContext): Promise<EntryResult> {
  const { entry } = run;
  const { shell } = session;
  const { terminationTimeoutMs } = session.spec;
  const start = { type: 'restart', entryId: entry.id, terminationTimeoutMs } as const;
  const end = await runOnShell(start, run, session, {
    onOutput: (stream, offset, bytes) => shell.live?.ack(entry.id, stream, offset + bytes.byteLength),
    received: () => ({ stdout: 0, stderr: 0 }),
  });
  // The next entry gets a fresh shell, as requested, however the old one ended.
  if (end.type !== 'ended') await shell.abandon();
  const base = resultBase(entry, session, end.type === 'ended' ? end.end : undefined);
  const fresh = { ...base.shell, state: 'lost', reason: 'restarted' } as const;
  const { timings, hostId } = base;
  const result = newResult({ outcome: 'success', exitCode: 0, reason: 'exited' }, { shell: fresh, timings, hostId });
  return { result, output: [] };
}
