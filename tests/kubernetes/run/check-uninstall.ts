import { type Installation, openClusterStage } from '../stage/cluster-stage.ts';
import { listSessionPods } from '../stage/pods.ts';
import { type ChartInstaller, uninstallChart } from './install-chart.ts';
import type { Row } from './table.ts';

/** Uninstalls the chart while a session is open. No Pod of a session may stay. */
export async function checkUninstall(installer: ChartInstaller, installation: Installation): Promise<Row> {
  const name = 'helm uninstall leaves no Pod of a session';
  const { kubectl } = installer;
  try {
    await leaveSession(installation);
    if ((await listSessionPods(kubectl)).length === 0) throw new Error('the session that is open has no Pod');
    await uninstallChart(installer);
    // The garbage collector of the cluster deletes them behind the command.
    await kubectl.run([
      ...['wait', '--for=delete', 'pod', '--selector=app.kubernetes.io/managed-by=shellfleet', '--timeout=120s'],
    ]);
    const left = await listSessionPods(kubectl);
    if (left.length === 0) return { result: 'passed', name };
    return { result: 'failed', name, why: left.map(({ metadata }) => metadata.name).join(', ') };
  } catch (error) {
    return { result: 'failed', name, why: (error as Error).message };
  }
}

/** Opens a session, and disconnects without closing it. */
async function leaveSession(installation: Installation): Promise<void> {
  await using stage = await openClusterStage(installation);
  const session = await stage.fleet.session('at-uninstall', stage.spec);
  const { outcome, error } = await session.run('true', { timeoutMs: 60_000 });
  if (outcome !== 'success') throw new Error(error?.message ?? outcome);
}
