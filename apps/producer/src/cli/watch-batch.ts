import type { Batch, Fleet, SessionInfo, ShellfleetError } from '@shellfleet/client';
import type { CliOutput } from './terminal.ts';
import { noHostError, patienceOf, reasonToWait } from './watch-waiting.ts';

const LOOK_EVERY_MS = 2_000;
/** Most begun tasks that are checked. More are not needed, because tasks of a batch mostly wait for the same reason. */
const MOST_LOOKED_AT = 16;

interface WatchOptions {
  startDeadlineMs: number | undefined;
  /** Called when for too long no live host could run any of the batch's tasks. */
  onHopeless(reason: ShellfleetError): void;
}

/** Reports why tasks of a batch wait, once for each kind of reason. `watchWaiting` does the same for a session. */
export function watchBatch(terminal: CliOutput, fleet: Fleet, batch: Batch, options: WatchOptions): Disposable {
  const said = new Set<string>();
  let inVainSince: number | undefined;
  const look = async () => {
    const ids = batch.sessionIds.slice(0, MOST_LOOKED_AT);
    const infos = (await Promise.all(ids.map((id) => infoOf(fleet, id)))).filter((info) => info !== undefined);
    const reasons = infos.map((info) => ({ id: info.id, reason: reasonToWait(info.id, info) }));
    for (const { reason } of reasons) {
      if (reason === undefined || said.has(reason.kind)) continue;
      said.add(reason.kind);
      terminal.say(reason.says);
    }
    const first = reasons[0]?.reason;
    const isInVain = first !== undefined && reasons.every(({ reason }) => reason?.kind.startsWith('no-host') === true);
    inVainSince = isInVain ? (inVainSince ?? Date.now()) : undefined;
    const isOver =
      inVainSince !== undefined && Date.now() - inVainSince >= patienceOf(terminal, options.startDeadlineMs);
    if (isOver && first !== undefined) options.onHopeless(noHostError('batch', first.words, options.startDeadlineMs));
  };
  const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

async function infoOf(fleet: Fleet, id: string): Promise<SessionInfo | undefined> {
  return (await fleet.attach(id))?.info();
}
