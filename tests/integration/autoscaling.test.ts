import { describe, expect, test } from 'vitest';
import { Autoscaler, type ScalingRules, SYNC_SECONDS } from '../support/kubernetes/autoscaler.ts';
import { ScaledFleet } from '../support/kubernetes/scaled-fleet.ts';
import { usePlacement } from '../support/open-placement.ts';
import { createRandom } from '../support/random.ts';

// Promise: with the chart's rules and the metric of /scale, workers follow the load, and nothing ends that runs.

const SLOTS = 10;
const SESSION_SECONDS = 300;
const TICK_SECONDS = 5;

/** The behaviour of infra/helm/shellfleet/templates/scaling.yaml, for workers with fewer slots. */
const RULES: ScalingRules = {
  ...{ minReplicas: 2, maxReplicas: 40, target: SLOTS * 0.8 },
  up: { window: 0, policy: { type: 'Percent', value: 100, period: 15 } },
  down: { window: 600, policy: { type: 'Pods', value: 1, period: 120 } },
};

/** Sessions that arrive in a minute: tenfold within the 21st minute, and back in the 41st. */
function arrivalsPerMinute(at: number): number {
  const minute = at / 60;
  const rise = Math.min(1, Math.max(0, minute - 20)) - Math.min(1, Math.max(0, minute - 40));
  return 4 + 36 * rise;
}

usePlacement();

describe('workers that follow the demand', () => {
  test('rise with a load that grows tenfold, fall once, and lose no session', async () => {
    const random = createRandom(7);
    const scaled = new ScaledFleet({ slots: SLOTS, startSeconds: 10, sessionSeconds: SESSION_SECONDS, random });
    const autoscaler = new Autoscaler(RULES);
    await scaled.scaleTo(RULES.minReplicas, -60);
    const replicas: number[] = [];
    let due = 0;
    for (let at = 0; at < 75 * 60; at += TICK_SECONDS) {
      due += (arrivalsPerMinute(at) / 60) * TICK_SECONDS * (0.5 + random.next());
      const count = Math.floor(due);
      due -= count;
      await scaled.arrive(at, count);
      await scaled.work(at);
      if (at % SYNC_SECONDS !== 0) continue;
      const next = autoscaler.decide(at, scaled.replicas, await scaled.demand());
      await scaled.scaleTo(next, at);
      replicas.push(next);
    }
    const steps = replicas.slice(1).map((next, index) => Math.sign(next - (replicas[index] ?? next)));
    const moves = steps.filter((step) => step !== 0);
    const most = Math.max(...replicas);
    expect({
      turns: moves.filter((step, index) => index > 0 && step !== moves[index - 1]).length,
      rises: moves[0],
      isEnough: most >= (40 * 5) / SLOTS && most <= 28,
      longestWait: Math.max(...scaled.waits) <= 15,
      sessions: scaled.ended + scaled.held,
      hasMoved: scaled.moved > 0,
    }).toEqual({ turns: 1, rises: 1, isEnough: true, longestWait: true, sessions: scaled.added, hasMoved: true });
  }, 60_000);
});
