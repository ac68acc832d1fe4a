import type { Fleet } from '@shellfleet/client';
import type { PolicyName } from '@shellfleet/protocol';
import { ulid } from 'ulid';

const SLOT_PATIENCE_MS = 20_000;

/** Runs a command in a new session as an end-to-end check. A lack of free slots is reported, but is not a failure. */
export async function runFirstCommand(
  fleet: Fleet,
  policy: PolicyName,
  { report, signal }: { report: (line: string) => void; signal: AbortSignal },
): Promise<void> {
  const startedAt = performance.now();
  const session = await fleet.session(`hello-${ulid().toLowerCase()}`, { policy }, { driven: true });
  const command = await session.submit('echo "Hello from $(hostname), a shell of its own"');
  const patience = AbortSignal.timeout(SLOT_PATIENCE_MS);
  try {
    const result = await command.result({ signal: AbortSignal.any([patience, signal]) });
    if (result.outcome !== 'success')
      throw new Error(result.error?.message ?? `it ended as ${result.outcome}: ${result.stderr}`);
    report(
      `First command: ${result.stdout.trim()} (${Math.round(performance.now() - startedAt)} ms, a new ${policy === 'docker' ? 'container' : 'shell'} included)`,
    );
  } catch (error) {
    if (!patience.aborted || signal.aborted) throw error;
    report('The first command still waits: every slot is taken. The fleet is up; it runs when one is free.');
  } finally {
    await session.close();
  }
}
