import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensureMachine, stopDocker } from '@shellfleet/setup';
import { bundleInto } from '../support/programs.ts';
import { runRound } from './drive/run-round.ts';
import { seedOf } from './plan/operations.ts';
import { ROUND_KINDS } from './plan/rounds.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string' },
    round: { type: 'string' },
    seconds: { type: 'string', default: '60' },
  },
});
const seed = Number(values.seed ?? Date.now() % 1_000_000);
await using cleanup = new AsyncDisposableStack();
const machine = await ensureMachine(process.env, console.error);
if (machine.engine.startedHere) cleanup.defer(async () => void (await stopDocker(process.env)));
const folder = await mkdtemp(join(tmpdir(), 'shellfleet-programs-'));
cleanup.defer(() => rm(folder, { recursive: true, force: true }));
const { worker, client } = await bundleInto(folder, {
  worker: 'apps/worker/src/main.ts',
  client: 'tests/chaos/drive/client-process.ts',
});
const until = Date.now() + Number(values.minutes) * 60_000;
for (let round = Number(values.round ?? 0); ; round += 1) {
  const kind = ROUND_KINDS[round % ROUND_KINDS.length]!;
  const report = await runRound({
    kind,
    seed: seedOf(seed, `round ${round}`),
    seconds: Number(values.seconds),
    machine: { dockerHost: machine.engine.endpoint.dockerHost, sessionImage: machine.sessionImage, worker },
    client,
  });
  if (report.violations.length > 0) {
    await mkdir('/tmp/chaos-out', { recursive: true });
    await writeFile(`/tmp/chaos-out/round-${round}.json`, JSON.stringify(report));
  }
  const commands = report.history.clientEvents.filter(({ type }) => type === 'accepted').length;
  console.log(
    `round ${round} (${kind.name}): ${commands} commands, ${report.history.faults.length} faults, ${report.violations.length} violations`,
  );
  for (const { rule, session, text } of report.violations) console.log(`  ${rule} ${session}: ${text}`);
  if (values.round !== undefined || Date.now() > until) break;
}
