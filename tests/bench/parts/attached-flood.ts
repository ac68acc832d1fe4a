import type { Session } from '@shellfleet/client';
import { mostResidentBytes, residentBytes } from '../../support/resident-bytes.ts';
import { createShellfleetRow, type ShellfleetOptions } from '../rows/shellfleet.ts';

export interface AttachedFloodFigures {
  /** the most memory that the worker had resident during the flood, minus that before it */
  growthBytes: number;
  /** throughput from the call until the reader has all output */
  megabytesPerSecond: number;
  bytes: number;
}

/**
 * Measures how much a worker's memory grows while one command floods a reader that is attached to it. The worker is a
 * new one that has run a few commands, because one after a load has grown already.
 */
export async function measureAttachedFlood(options: ShellfleetOptions, bytes: number): Promise<AttachedFloodFigures> {
  const row = await createShellfleetRow(options);
  try {
    const session = await row.openSession();
    for (let turn = 0; turn < 20; turn++) await session.run('echo hi');
    const pid = row.workerPid ?? -1;
    const before = await residentBytes(pid);
    const from = performance.now();
    const flood = readAll(session, bytes);
    const growthBytes = (await mostResidentBytes(pid, flood)) - before;
    await flood;
    const megabytesPerSecond = bytes / 1_000 / (performance.now() - from);
    return { growthBytes, megabytesPerSecond, bytes };
  } finally {
    await row.close();
  }
}

async function readAll(session: Session, bytes: number): Promise<void> {
  const command = await session.submit(`yes | head -c ${bytes}`, { attachReader: true, timeoutMs: 600_000 });
  let read = 0;
  for await (const { data } of command.output()) read += data.byteLength;
  const { outcome } = await command.result();
  if (outcome !== 'success' || read !== bytes)
    throw new Error(`a flood of ${bytes} bytes ended as ${outcome} with ${read}`);
}
